use std::cmp::Reverse;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::explain::Rejected;
use crate::filter::FilterFacts;
use crate::json::Object;
use crate::sample;

// Shorthand for the integrations of a channel, oldest first. A letter is the identifier, and `?` a
// condition that holds for the plan `pro`. Then comes `-` for an inactive one, `x` for a deleted
// one, or the priority, after a `*` for the primary one. `/` and a number make a fallback.
fn peers(channel: Channel, short: &str) -> Vec<Integration> {
    short.split_whitespace().map(|one| peer(channel, one)).collect()
}

fn peer(channel: Channel, short: &str) -> Integration {
    let (short, fallback) = short.split_once('/').unwrap_or((short, ""));
    let fallback = fallback.parse().ok();
    let (name, rest) = short.split_at(1);
    let unconditional = rest.trim_start_matches('?');
    let rank = unconditional.trim_start_matches('*');
    let standing = match rank {
        "-" => Standing::Inactive,
        "x" => Standing::Deleted { at: sample::at(7), by: UserId::host() },
        priority => {
            let primary = rank != unconditional;
            Standing::Active { primary, priority: priority.parse().unwrap() }
        }
    };
    let filters = if unconditional == rest { vec![] } else { vec![plan_is_pro()] };
    Integration { standing, filters, fallback, ..sample::integration(number(name), name, channel) }
}

fn number(name: &str) -> u128 {
    name.bytes().next().unwrap().into()
}

fn short(peers: &[Integration]) -> String {
    let one = |peer: &Integration| {
        let condition = if peer.filters.is_empty() { "" } else { "?" };
        let rank = match &peer.standing {
            Standing::Inactive => "-".into(),
            Standing::Deleted { .. } => "x".into(),
            Standing::Active { primary: true, priority } => format!("*{priority}"),
            Standing::Active { primary: false, priority } => priority.to_string(),
        };
        let fallback = peer.fallback.map(|fallback| format!("/{fallback}")).unwrap_or_default();
        format!("{}{condition}{rank}{fallback}", peer.identifier)
    };
    peers.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn plan_is_pro() -> Filter {
    let part = json!({ "field": "plan", "operator": "EQUAL", "value": "pro", "on": "payload" });
    let group = json!({ "type": "GROUP", "value": "AND", "children": [part] });
    serde_json::from_value(group).unwrap()
}

#[track_caller]
fn check_on(
    channel: Channel,
    before: &str,
    name: &str,
    change: impl FnOnce(&mut Peers, IntegrationId),
    after: &str,
) {
    let mut changed = Peers(peers(channel, before));
    change(&mut changed, sample::id(number(name)));
    assert_eq!(short(&changed.0), after, "from {before}");
}

#[track_caller]
fn check(before: &str, name: &str, change: impl FnOnce(&mut Peers, IntegrationId), after: &str) {
    check_on(Channel::Email, before, name, change, after);
}

fn create(peers: &mut Peers, id: IntegrationId) {
    peers.activate_new(id);
}

fn activate(peers: &mut Peers, id: IntegrationId) {
    peers.activate(id);
}

fn delete(peers: &mut Peers, id: IntegrationId) {
    peers.delete(id, false, UserId::host(), sample::at(7));
}

fn delete_and_promote(peers: &mut Peers, id: IntegrationId) {
    peers.delete(id, true, UserId::host(), sample::at(7));
}

#[test]
fn the_first_one_without_filters_is_created_primary() {
    check("a-", "a", create, "a*1");
    check("a- b-", "b", create, "a- b*1");
    check("a1 b-", "b", create, "a1 b*2");
    check("a?-", "a", create, "a?1");
    check("a?1 b-", "b", create, "a?1 b*2");
    check("a-/1", "a", create, "a1/1");
    check("a1/1 b-", "b", create, "a1/1 b*2");
    check_on(Channel::Sms, "a-", "a", create, "a*1");
}

#[test]
fn any_other_is_created_right_below_the_primary_one() {
    check("a*1 b-", "b", create, "a*2 b1");
    check("a*2 b1 c-", "c", create, "a*3 b1 c2");
    check("a*2 b1 c?-", "c", create, "a*3 b1 c?2");
}

#[test]
fn what_is_activated_later_does_not_become_primary() {
    check("a-", "a", activate, "a1");
    check("a1 b-", "b", activate, "a1 b2");
    check("a*1 b-", "b", activate, "a*2 b1");
    check("a*2 b1", "a", activate, "a*2 b1");
    check("a*2 b1", "b", create, "a*2 b1");
}

#[test]
fn what_is_deactivated_leaves_its_rank_to_those_below() {
    check("a*3 b2 c1", "b", Peers::deactivate, "a*2 b- c1");
    check("a*3 b2 c1", "a", Peers::deactivate, "a- b2 c1");
    check("a*1 b-", "b", Peers::deactivate, "a*1 b-");
}

/// Cases of the specification for making an integration primary, in its order.
#[test]
fn the_primary_one_is_active_without_filters_and_on_top() {
    check("a*2 b?1", "b", Peers::make_primary, "a1 b*2");
    check("a*2 b1", "a", Peers::make_primary, "a*2 b1");
    check("a-", "a", Peers::make_primary, "a*1");
    check("a*1 b-", "b", Peers::make_primary, "a1 b*2");
    check("p*2 a1 i- t-", "t", Peers::make_primary, "p2 a1 i- t*3");
    check("p*3 a2 b1", "b", Peers::make_primary, "p2 a1 b*3");
    check("a- b- c?-", "c", Peers::make_primary, "a- b- c*1");
}

#[test]
fn what_gets_filters_is_not_primary_any_more() {
    check("a?*2 b1", "a", Peers::follow_filters, "a?2 b1");
    check("a*2 b?1", "b", Peers::follow_filters, "a*2 b?1");
    check("a*2 b1", "a", Peers::follow_filters, "a*2 b1");
    check("a?-", "a", Peers::follow_filters, "a?-");
}

/// One row per change: the integrations before, the changed one, `active`, and the integrations
/// after.
#[test]
fn an_update_follows_the_active_flag_or_else_the_filters() {
    for (before, changed, active, after) in [
        ("a*2 b1", "a?*2", None, "a?2 b1"),
        ("a*2 b1", "a?*2", Some(true), "a?2 b1"),
        ("a*2 b1", "a*2", Some(false), "a- b1"),
        ("a*2 b1", "a*2", Some(true), "a*2 b1"),
        ("a*1 b-", "b-", Some(true), "a*2 b1"),
        ("a*1 b-", "b?-", None, "a*1 b?-"),
    ] {
        let changed = peer(Channel::Email, changed);
        let name = changed.identifier.as_str();
        check(before, name, |peers, _| peers.update(&changed, active), after);
    }
}

#[test]
fn only_one_in_app_integration_is_admitted() {
    for (channel, short, expected) in
        [(Channel::InApp, "", true), (Channel::InApp, "a-", false), (Channel::Email, "a*1", true)]
    {
        let new = peer(channel, "z-");
        assert_eq!(Peers(peers(channel, short)).admits(&new), expected, "{channel} {short}");
    }
}

#[test]
fn what_is_deleted_leaves_no_primary_unless_the_next_one_is_promoted() {
    for (before, name, after, promoted) in [
        ("a*3 b2 c2", "b", "a*2 bx c1", "a*2 bx c1"),
        ("a*3 b2 c1", "a", "ax b2 c1", "ax b*2 c1"),
        ("a*3 b?2 c1", "a", "ax b?2 c1", "ax b?1 c*2"),
        ("a*3 b2/1 c1", "a", "ax b2/1 c1", "ax b1/1 c*2"),
        ("a*3 b2/2 c1/1", "a", "ax b2/2 c1/1", "ax b*2/2 c1/1"),
        ("a*3 b2/1 c?1", "a", "ax b2/1 c?1", "ax b*2/1 c?1"),
        ("a*2 b?1", "a", "ax b?1", "ax b?1"),
        ("a*2 b- c1", "a", "ax b- c1", "ax b- c*1"),
        ("a*1 b-", "a", "ax b-", "ax b-"),
        ("a*1 b-", "b", "a*1 bx", "a*1 bx"),
        ("a2 b1", "a", "ax b1", "ax b1"),
    ] {
        check(before, name, delete, after);
        check(before, name, delete_and_promote, promoted);
    }
}

#[test]
fn a_deletion_is_dated_and_signed() {
    let mut deleted = Peers(peers(Channel::Email, "a*1"));
    deleted.delete(sample::id(number("a")), false, "eve".parse().unwrap(), sample::at(9));
    let by = UserId::new("eve").unwrap();
    assert_eq!(deleted.0[0].standing, Standing::Deleted { at: sample::at(9), by });
}

#[test]
fn other_channels_have_neither_a_primary_one_nor_ranks() {
    for channel in [Channel::InApp, Channel::Chat, Channel::Push] {
        check_on(channel, "a-", "a", create, "a0");
        check_on(channel, "a0 b-", "b", create, "a0 b0");
        check_on(channel, "a0 b0", "a", Peers::deactivate, "a- b0");
        check_on(channel, "a0 b0", "b", delete_and_promote, "a0 bx");
    }
}

#[test]
fn what_is_not_there_changes_nothing() {
    let changes: [fn(&mut Peers, IntegrationId); 7] = [
        create,
        activate,
        Peers::deactivate,
        Peers::make_primary,
        Peers::follow_filters,
        delete,
        delete_and_promote,
    ];
    for change in changes {
        check("a*2 b?1 c-", "z", change, "a*2 b?1 c-");
    }
}

#[track_caller]
fn check_choice(channel: Channel, short: &str, named: Option<&str>, plan: &str, chosen: &str) {
    let mut integrations = peers(channel, short);
    // An integration of another channel is never chosen.
    let other = if channel == Channel::Sms { Channel::Email } else { Channel::Sms };
    integrations.extend(peers(other, "y*9 z?8"));
    let payload = sample::object(json!({ "plan": plan }));
    let nobody = Object::default();
    let facts = FilterFacts::new(&nobody, &payload);
    let route = route(&integrations.iter().collect::<Vec<_>>(), channel, named, &facts);
    let route: Vec<_> = route.iter().map(|routed| routed.integration.identifier.as_str()).collect();
    assert_eq!(route.join(" "), chosen, "{short}, plan {plan}");
}

#[test]
fn the_one_that_sends_is_chosen() {
    for (short, named, free, pro) in [
        ("", None, "", ""),
        ("a- bx", None, "", ""),
        ("a1", None, "a", "a"),
        ("a2 b1", None, "", ""),
        ("a*2 b1", None, "a", "a"),
        ("a1 b*2", None, "b", "b"),
        ("a*2 b?1", None, "a", "b"),
        ("a*3 b?1 c?2", None, "a", "c"),
        ("a*3 b?2 c?1", None, "a", "b"),
        ("a1 b?2", None, "a", "b"),
        ("a2 b1 c?3", None, "", "c"),
        ("a?1", None, "", "a"),
        ("a?-", None, "", ""),
        ("a*2 b1", Some("b"), "b", "b"),
        ("a*2 b?1", Some("b"), "b", "b"),
        ("a*1 b-", Some("b"), "", ""),
        ("a*1 bx", Some("b"), "", ""),
        ("a*1", Some("y"), "", ""),
        ("a*1", Some("nobody"), "", ""),
    ] {
        for channel in [Channel::Email, Channel::Sms] {
            check_choice(channel, short, named, "free", free);
            check_choice(channel, short, named, "pro", pro);
        }
    }
}

#[test]
fn fallbacks_follow_in_their_order() {
    for (short, named, free, pro) in [
        ("a*3 b2/2 c1/1", None, "a c b", "a c b"),
        ("a*3 b2/1 c1/1", None, "a b c", "a b c"),
        // A fallback sends what no other one does.
        ("a2/1 b1", None, "b a", "b a"),
        ("a1/1", None, "a", "a"),
        ("a2/2 b1/1", None, "b a", "b a"),
        ("a3 b2 c1/1", None, "c", "c"),
        // Its filters say for which messages.
        ("a*2 b?1/1", None, "a", "a b"),
        ("a*2 b-/1", None, "a", "a"),
        ("a*3 b?2 c1/1", None, "a c", "b c"),
        // The primary one may be a fallback of the others.
        ("a*2/1 b?1", None, "a", "b a"),
        ("a*2/1 b1/2", None, "a b", "a b"),
        ("a*2 b1/1", Some("a"), "a b", "a b"),
        ("a*2 b1/1", Some("b"), "b", "b"),
        ("a*2/1 b1", Some("b"), "b a", "b a"),
        ("a*2 b1/1", Some("c"), "", ""),
    ] {
        for channel in [Channel::Email, Channel::Sms] {
            check_choice(channel, short, named, "free", free);
            check_choice(channel, short, named, "pro", pro);
        }
    }
}

/// One row per reason for which an integration is no candidate.
#[test]
fn a_rejected_integration_has_a_reason() {
    let nobody = Object::default();
    let payload = sample::object(json!({ "plan": "free" }));
    let facts = FilterFacts::new(&nobody, &payload);
    for (short, named, expected) in [
        ("a*1", None, None),
        ("a-", None, Some(Rejected::Inactive)),
        ("ax", Some("a"), Some(Rejected::Inactive)),
        ("a*1", Some("b"), Some(Rejected::NotNamed)),
        ("a?1", Some("a"), None),
    ] {
        let one = peer(Channel::Email, short);
        assert_eq!(rejected(&one, named, &facts), expected, "{short}");
    }
    let other = peer(Channel::Sms, "a*1");
    assert_eq!(route(&[&other], Channel::Email, None, &facts), []);
    let for_pro = peer(Channel::Email, "a?1");
    let checks = match rejected(&for_pro, None, &facts) {
        Some(Rejected::Filters { checks }) => checks,
        other => panic!("{other:?}"),
    };
    assert!(checks.iter().any(|check| check.actual == Some(json!("free"))), "{checks:?}");
}

#[test]
fn only_channels_with_a_primary_integration_have_fallbacks() {
    for (channel, is_fine) in [("email", true), ("sms", true), ("chat", false), ("push", false)] {
        let create = json!({ "providerId": "x", "channel": channel, "fallback": 1 });
        let create = serde_json::from_value(create).unwrap();
        let made = Integration::new(sample::id(1), &sample::home(), "x".parse().unwrap(), create);
        let expected = "`fallback` must be left out: only e-mail and text messages have fallbacks";
        let problem = made.err().map(|invalid| invalid.to_string());
        assert_eq!(problem, (!is_fine).then(|| expected.to_owned()), "{channel}");
    }
}

#[test]
fn on_other_channels_the_newest_is_chosen() {
    for (short, named, free, pro) in [
        ("a0 b0", None, "b", "b"),
        ("a0 b-", None, "a", "a"),
        ("a0 b?0", None, "a", "b"),
        ("a0 b?0 c?0", None, "a", "b"),
        ("a0 b0", Some("a"), "a", "a"),
    ] {
        for channel in [Channel::InApp, Channel::Chat, Channel::Push] {
            check_choice(channel, short, named, "free", free);
            check_choice(channel, short, named, "pro", pro);
        }
    }
}

#[test]
fn a_new_one_is_inactive_and_called_after_its_provider() {
    let integration = sample::integration(1, "outbox-1", Channel::Email);
    assert_eq!(integration.standing, Standing::Inactive);
    assert_eq!(integration.name, "outbox");
    assert!(!integration.is_active() && !integration.is_primary() && !integration.is_deleted());
}

#[test]
fn what_no_integration_can_be_is_refused_with_its_place() {
    let deep = json!([{ "type": "GROUP", "value": "AND", "children": [
        { "field": "a", "operator": "BETWEEN", "value": "1", "on": "payload" },
    ] }]);
    for (create, problem) in [
        (json!({ "providerId": "" }), "`providerId` must not be empty"),
        (
            json!({ "providerId": "x".repeat(129) }),
            "`providerId` must be at most 128 characters long",
        ),
        (json!({ "name": "" }), "`name` must not be empty"),
        (json!({ "name": "ü".repeat(129) }), "`name` must be at most 128 characters long"),
        (
            json!({ "conditions": deep }),
            "`conditions[0].children[0].value` must be two values, as in `1,5`",
        ),
    ] {
        let mut whole = json!({ "providerId": "outbox", "channel": "email" });
        whole.as_object_mut().unwrap().extend(create.as_object().unwrap().clone());
        let whole = serde_json::from_value(whole).unwrap();
        let identifier = "outbox".parse().unwrap();
        let error = Integration::new(sample::id(1), &sample::home(), identifier, whole);
        assert_eq!(error.unwrap_err().to_string(), problem);
    }
}

#[test]
fn an_identifier_is_made_of_the_name() {
    for (name, made) in [
        (None, "outbox-k7"),
        (Some("Amazon SES (EU)"), "amazon-ses-eu-k7"),
        (Some("Grüße & mehr"), "gre-mehr-k7"),
        (Some("邮件"), "k7"),
        (Some(&*"long ".repeat(99)), &*format!("{}-k7", ["long"; 13].join("-"))),
    ] {
        let create = json!({ "providerId": "outbox", "channel": "email", "name": name });
        let create = serde_json::from_value(create).unwrap();
        let identifier = Integration::made_identifier(&create, "k7").unwrap();
        assert_eq!(identifier.as_str(), made);
    }
}

/// As of a redacted record that is changed and sent back.
#[test]
fn a_masked_secret_is_not_stored() {
    let key = Configurations {
        inbound_webhook_signing_key: Some("key".into()),
        ..Configurations::default()
    };
    let before = Integration {
        credentials: Credentials::default().user("ada").password("secret"),
        configurations: Some(key),
        ..peer(Channel::Email, "a*2")
    };
    let shown = before.clone().redacted();
    let update = IntegrationUpdate::default();
    let refused = |update: IntegrationUpdate| before.updated(update).unwrap_err().to_string();
    let error = refused(update.clone().credentials(shown.credentials.clone()));
    assert_eq!(error, "`credentials.password` must be a secret, not its mask");
    let configurations = Patch::Set(shown.configurations.clone().unwrap());
    let error = refused(IntegrationUpdate { configurations, ..update.clone() });
    let field = "configurations.inboundWebhookSigningKey";
    assert_eq!(error, format!("`{field}` must be a secret, not its mask"));

    // Another change does not ask for what an older version has stored.
    let renamed = IntegrationUpdate { name: Some("Main".into()), ..update };
    assert_eq!(shown.updated(renamed.clone()).unwrap().credentials, shown.credentials);
    assert_eq!(before.updated(renamed).unwrap().credentials, before.credentials);
}

#[test]
fn an_update_changes_what_it_names() {
    let before = peer(Channel::Email, "a*2");
    assert_eq!(before.updated(IntegrationUpdate::default()), Ok(before.clone()));

    let update = json!({
        "name": "Main", "identifier": "main", "credentials": { "user": "ada" },
        "conditions": [plan_is_pro()], "configurations": { "inboundWebhookEnabled": true },
        "active": false,
    });
    let after = before.updated(serde_json::from_value(update).unwrap()).unwrap();
    let configurations =
        Configurations { inbound_webhook_enabled: Some(true), ..Configurations::default() };
    let expected = Integration {
        name: "Main".into(),
        identifier: "main".parse().unwrap(),
        credentials: Credentials { user: Some("ada".into()), ..Credentials::default() },
        filters: vec![plan_is_pro()],
        configurations: Some(configurations),
        ..before.clone()
    };
    assert_eq!(after, expected, "whether it is active is for its peers to say");

    let cleared = IntegrationUpdate { configurations: Patch::Clear, ..Default::default() };
    assert_eq!(after.updated(cleared).unwrap().configurations, None);
    let unnamed = IntegrationUpdate { name: Some(String::new()), ..Default::default() };
    assert_eq!(before.updated(unnamed), Err(Invalid::new("name", Reason::Empty)));
}

#[test]
fn a_standing_is_read_as_it_is_written() {
    let json = |active, primary, priority, deleted| {
        json!({
            "active": active, "primary": primary, "priority": priority, "deleted": deleted,
        })
    };
    let deleted = Standing::Deleted { at: sample::at(0), by: "eve".parse().unwrap() };
    let mut gone = json(false, false, 0, true);
    gone["deletedAt"] = "1970-01-01T00:00:00.000Z".into();
    gone["deletedBy"] = "eve".into();
    for (standing, json) in [
        (Standing::Inactive, json(false, false, 0, false)),
        (Standing::Active { primary: true, priority: 3 }, json(true, true, 3, false)),
        (Standing::Active { primary: false, priority: 0 }, json(true, false, 0, false)),
        (deleted, gone),
    ] {
        assert_eq!(serde_json::to_value(standing.clone()).unwrap(), json);
        assert_eq!(serde_json::from_value::<Standing>(json).unwrap(), standing);
    }
}

#[derive(Clone, Debug)]
enum Change {
    Activate,
    ActivateNew,
    Deactivate,
    MakePrimary,
    SetFilters(bool),
    Delete { promote: bool },
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        Just(Change::Activate),
        Just(Change::ActivateNew),
        Just(Change::Deactivate),
        Just(Change::MakePrimary),
        any::<bool>().prop_map(Change::SetFilters),
        any::<bool>().prop_map(|promote| Change::Delete { promote }),
    ]
}

impl Change {
    fn apply(&self, peers: &mut Peers, id: IntegrationId) {
        match *self {
            Change::Activate => peers.activate(id),
            Change::ActivateNew => peers.activate_new(id),
            Change::Deactivate => peers.deactivate(id),
            Change::MakePrimary => peers.make_primary(id),
            Change::SetFilters(some) => {
                for peer in peers.0.iter_mut().filter(|peer| peer.id == id) {
                    peer.filters = if some { vec![plan_is_pro()] } else { vec![] };
                }
                peers.follow_filters(id);
            }
            Change::Delete { promote } => peers.delete(id, promote, UserId::host(), sample::at(7)),
        }
        peers.0.retain(|peer| !peer.is_deleted());
    }
}

// Active integrations without `id`, in order of rank.
fn order(peers: &Peers, id: IntegrationId) -> Vec<IntegrationId> {
    let mut active: Vec<_> = peers.0.iter().filter(|peer| peer.is_active()).collect();
    active.sort_by_key(|peer| Reverse(peer.priority()));
    active.iter().map(|peer| peer.id).filter(|other| *other != id).collect()
}

proptest! {
    #[test]
    fn ranks_are_whole_with_the_primary_one_on_top(
        conditional in prop::collection::vec(any::<bool>(), 0..6),
        history in prop::collection::vec((0_usize..6, change()), 0..24),
    ) {
        let short = |(name, conditional)| format!("{name}{}-", if conditional { "?" } else { "" });
        let all: Vec<_> = ('a'..).zip(conditional).map(short).collect();
        let mut peers = Peers(peers(Channel::Email, &all.join(" ")));
        for (index, change) in history {
            let id = sample::id(number("a") + index as u128);
            let before = order(&peers, id);
            change.apply(&mut peers, id);

            let mut active: Vec<_> = peers.0.iter().filter(|peer| peer.is_active()).collect();
            active.sort_by_key(|peer| peer.priority());
            prop_assert!(active.iter().map(|peer| peer.priority()).eq((1..).take(active.len())));
            let below_top = active.split_last().map_or(&[][..], |(_, below)| below);
            prop_assert!(!below_top.iter().any(|peer| peer.is_primary()));
            prop_assert!(!active.iter().any(|peer| peer.is_primary() && !peer.filters.is_empty()));
            if !matches!(change, Change::Delete { promote: true }) {
                prop_assert_eq!(order(&peers, id), before, "the others keep their order");
            }
        }
    }

    #[test]
    fn elsewhere_nothing_is_ranked(
        history in prop::collection::vec((0_usize..3, change()), 0..12),
    ) {
        let mut peers = Peers(peers(Channel::Chat, "a- b?- c-"));
        for (index, change) in history {
            if !matches!(change, Change::MakePrimary) {
                change.apply(&mut peers, sample::id(number("a") + index as u128));
            }
            prop_assert!(peers.0.iter().all(|peer| peer.priority() == 0 && !peer.is_primary()));
        }
    }
}
