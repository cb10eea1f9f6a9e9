//! The shop, over loopback: a server, a browser of a few lines, and a mail server of a few more.

mod live;
mod support;

use serde_json::{Value, json};
use support::mail_server::MailServer;
use support::server::{Server, URL};
use tidings::SendError;

const ORDERED: &str = "customer=ada&item=A+blue+teapot";

fn shop(mails: &MailServer) -> Server {
    let shop = Server::start(Some(mails.post()));
    let signed_up = shop.submit("/sign-up", "customer=ada&name=Ada&email=ada%40example.org");
    assert_eq!((signed_up.status, signed_up.location.as_deref()), (303, Some("/inbox/ada")));
    shop
}

fn shop_without_mail() -> Server {
    let shop = Server::start(None);
    shop.submit("/sign-up", "customer=ada&name=Ada&email=ada%40example.org");
    shop
}

fn unread(shop: &Server) -> u64 {
    shop.get("/api/inbox/ada/counts").json()["unread"].as_u64().unwrap()
}

fn newest(inbox: &str) -> &str {
    let (_, rest) = inbox.split_once("name=\"message\" value=\"").unwrap();
    rest.split_once('"').unwrap().0
}

#[test]
fn a_customer_orders_and_reads_the_inbox() {
    let mails = MailServer::start();
    let shop = shop(&mails);
    assert_eq!(shop.submit("/orders", &format!("number=A-1&{ORDERED}")).status, 303);

    let inbox = shop.get("/inbox/ada").body;
    assert!(unread(&shop) == 2 && inbox.contains("Welcome to the shop, Ada!"));
    assert!(inbox.contains("A blue teapot has left the shop"));
    let mail = mails.wait_for(1).remove(0);
    assert!(mail.contains("Subject: Order A-1 is on its way") && mail.contains("Dear Ada,"));
    assert!(mail.contains("From: \"The shop\" <shop@example.org>"), "{mail}");
    assert!(mail.contains("To: Ada <ada@example.org>") && mail.contains("Message-ID: <"), "{mail}");

    shop.submit("/inbox/ada", &format!("action=read&message={}", newest(&inbox)));
    assert_eq!(unread(&shop), 1);
    shop.submit("/inbox/ada", "action=read-all");
    assert_eq!(unread(&shop), 0);
}

#[test]
fn a_message_goes_from_folder_to_folder() {
    let shop = shop_without_mail();
    let message = newest(&shop.get("/inbox/ada").body).to_owned();
    let act = |folder: &str, action: &str| {
        let form = format!("action={action}&message={message}");
        let answer = shop.submit(&format!("/inbox/ada?folder={folder}"), &form);
        let back = format!("/inbox/ada?folder={folder}");
        assert_eq!((answer.status, answer.location), (303, Some(back)), "{}", answer.body);
        ["inbox", "snoozed", "archive"].map(|folder| {
            shop.get(&format!("/inbox/ada?folder={folder}")).body.matches("<li ").count()
        })
    };
    assert_eq!(act("inbox", "snooze-hour"), [0, 1, 0]);
    assert_eq!(act("snoozed", "wake"), [1, 0, 0]);
    assert_eq!(act("inbox", "archive"), [0, 0, 1]);
    assert_eq!(act("archive", "unarchive"), [1, 0, 0]);
    assert_eq!((act("inbox", "unread"), unread(&shop)), ([1, 0, 0], 1));
    assert_eq!((act("inbox", "read"), unread(&shop)), ([1, 0, 0], 0));
    assert_eq!(act("inbox", "archive"), [0, 0, 1]);
    assert_eq!(act("archive", "delete"), [0, 0, 0]);
    assert_eq!(shop.submit("/inbox/ada", "action=fly").status, 422);
    assert_eq!(shop.submit("/inbox/ada", "action=read").status, 422, "no message");
}

#[test]
fn an_inbox_is_read_page_by_page() {
    let shop = shop_without_mail();
    for order in 0..25 {
        shop.submit("/orders", &format!("number={order}&{ORDERED}"));
    }
    let (mut path, mut seen) = ("/inbox/ada".to_owned(), 0);
    loop {
        let page = shop.get(&path).body;
        seen += page.matches("<li ").count();
        let Some((_, rest)) = page.split_once("<p class=\"older\"><a href=\"") else { break };
        path = format!("/inbox/ada{}", rest.split('"').next().unwrap().replace("&amp;", "&"));
    }
    assert_eq!(seen, 26);
    let first = shop.get("/inbox/ada").body;
    assert!(first.contains(" data-first") && !first.contains(" data-last"));
    let last = shop.get(&path).body;
    assert!(!last.contains(" data-first") && last.contains(" data-last"));
}

#[test]
fn a_form_that_is_sent_twice_is_one_order() {
    let mails = MailServer::start();
    let shop = shop(&mails);
    for _ in 0..2 {
        assert_eq!(shop.submit("/orders", &format!("number=A-1&{ORDERED}")).status, 303);
    }
    assert_eq!(unread(&shop), 2);
}

#[test]
fn a_customer_without_e_mail_gets_no_e_mail() {
    let mails = MailServer::start();
    let shop = shop(&mails);
    let on = || shop.get("/preferences/ada").body.matches("aria-checked=\"true\"").count();
    let preferences = shop.get("/preferences/ada").body;
    assert!(preferences.contains("Orders") && preferences.contains("Always on"));
    assert_eq!(on(), 6, "two by default, two for orders, two for offers");

    shop.submit("/orders", &format!("number=A-1&{ORDERED}"));
    mails.wait_for(1);
    shop.submit("/preferences/ada", "workflow=order-shipped&channel=email&enabled=false");
    assert_eq!(on(), 5);
    shop.submit("/orders", &format!("number=A-2&{ORDERED}"));

    let reason = "filtered_by_subscriber_workflow_preference";
    let activity = shop.wait_until("/admin/activity", |page| page.contains(reason));
    assert_eq!(activity.matches("message_sent").count(), 1);
    assert_eq!(mails.received().len(), 1);
    assert!(shop.get("/inbox/ada").body.contains("Order A-2"));
}

#[test]
fn a_default_holds_for_what_is_not_set() {
    let shop = shop_without_mail();
    let switch = |form: &str| assert_eq!(shop.submit("/preferences/ada", form).status, 303);
    let setting = |workflow: usize| {
        let all = shop.get("/api/preferences/ada").json();
        all["workflows"][workflow]["channels"]["email"].as_bool().unwrap()
    };
    switch("workflow=offer&channel=email&enabled=true");
    switch("channel=email&enabled=false");
    assert_eq!((setting(0), setting(1)), (false, true));
    switch("workflow=order-shipped&channel=email&enabled=true");
    assert!(setting(0));
    let critical = shop.submit("/preferences/ada", "workflow=welcome&channel=in_app&enabled=false");
    assert!(critical.status == 400 && critical.body.contains("welcome"), "{}", critical.body);
}

#[test]
fn a_link_in_an_e_mail_unsubscribes() {
    let mails = MailServer::start();
    let shop = shop(&mails);
    shop.submit("/orders", &format!("number=A-1&{ORDERED}"));
    let mail = mails.wait_for(1).remove(0);
    assert!(mail.contains("List-Unsubscribe-Post: List-Unsubscribe=One-Click"), "{mail}");
    let (_, link) = mail.split_once("List-Unsubscribe:").unwrap();
    let link = link.trim_start().strip_prefix('<').unwrap().split('>').next().unwrap();
    let path = link.strip_prefix(URL).unwrap();
    let subscribed = || {
        let all = shop.get("/api/preferences/ada").json();
        all["workflows"][0]["channels"]["email"].as_bool().unwrap()
    };

    let question = shop.get(path);
    assert!(question.status == 200 && question.body.contains("Orders"), "{}", question.body);
    assert!(subscribed(), "a mail program has opened the link");
    let answer = shop.submit(path, "List-Unsubscribe=One-Click");
    assert!(answer.status == 200 && answer.body.contains("You are unsubscribed"));
    assert!(!subscribed());
    assert!(shop.get(path).body.contains("You are unsubscribed"));

    shop.submit("/orders", &format!("number=A-2&{ORDERED}"));
    let reason = "filtered_by_subscriber_workflow_preference";
    shop.wait_until("/admin/activity", |page| page.contains(reason));
    assert_eq!(mails.received().len(), 1);
    let (most, last) = path.split_at(path.len() - 1);
    let forged = format!("{most}{}", if last == "x" { "y" } else { "x" });
    for (path, status) in
        [(forged.as_str(), 400), ("/unsubscribe?token=", 400), ("/unsubscribe", 400)]
    {
        assert_eq!(shop.get(path).status, status, "{path}");
        assert_eq!(shop.submit(path, "").status, status, "{path}");
    }
}

#[test]
fn an_offer_reaches_everybody_once() {
    let shop = shop_without_mail();
    shop.submit("/sign-up", "customer=bob&name=Bob&email=bob%40example.org");
    for _ in 0..2 {
        shop.submit("/offers", "number=1&text=%3Cb%3ECheap%3C%2Fb%3E");
    }
    for customer in ["ada", "bob"] {
        let inbox = shop.get(&format!("/inbox/{customer}")).body;
        assert_eq!(inbox.matches("&lt;b&gt;Cheap&lt;/b&gt;").count(), 1, "{inbox}");
    }
    shop.wait_until("/admin/activity", |page| page.matches("message_sent").count() == 2);
    let mails = shop.outbox();
    assert!(mails.len() == 2 && mails.iter().all(|mail| mail.starts_with("An offer for you\n")));
}

#[test]
fn the_activity_page_filters() {
    let mails = MailServer::start();
    let shop = shop(&mails);
    shop.submit("/sign-up", "customer=bob&name=Bob&email=bob%40example.org");
    shop.submit("/orders", &format!("number=A-1&{ORDERED}"));
    let rows = |query: &str| {
        let page = shop.get(&format!("/admin/activity?{query}"));
        assert_eq!(page.status, 200, "{}", page.body);
        page.body.matches("notification\"").count()
    };
    // The form sends empty fields.
    assert_eq!(rows("subscriberIds=&templates=&channels=&after=&before="), 3);
    assert_eq!(rows("subscriberIds=ada"), 2);
    assert_eq!(rows("subscriberIds=ada&templates=welcome"), 1);
    assert_eq!(rows("channels=email"), 1);
    assert_eq!(rows("channels[]=email&channels[]=in_app"), 3);
    assert_eq!(rows("before=2020-01-01"), 0);

    let first = shop.get("/admin/activity?limit=2").body;
    assert_eq!(first.matches("notification\"").count(), 2);
    assert!(first.contains("?limit=2&amp;page=1") && !first.contains("Newer"));
    let second = shop.get("/admin/activity?limit=2&page=1").body;
    assert_eq!(second.matches("notification\"").count(), 1);
    assert!(second.contains("?limit=2&amp;page=0") && !second.contains("Older"));
}

#[test]
fn mistakes_are_named() {
    let shop = Server::start(None);
    let cases = [
        (shop.get("/api/notifications?chanels=email"), 422, "`chanels`"),
        (shop.get("/api/notifications?chanels=email"), 422, "`channels`"),
        (shop.get("/api/notifications?channels=fax"), 422, "`channels"),
        (shop.get("/admin/activity?subscriberId=ada"), 422, "`subscriberIds`"),
        (shop.get("/api/inbox/ada?limit=many"), 422, "`limit`"),
        (shop.get("/api/inbox/ada?raed=false"), 422, "`raed`"),
        (shop.get("/api/preferences/ada?criticalty=all"), 422, "`criticalty`"),
        (
            shop.post("/api/subscribers", &json!({ "subscriberId": "a", "emial": "" })),
            422,
            "`emial`",
        ),
        (
            shop.post("/api/subscribers", &json!({ "subscriberId": "a", "emial": "" })),
            422,
            "`email`",
        ),
        (
            shop.post("/api/subscribers", &json!({ "subscriberId": "a", "email": "a" })),
            422,
            "`email`",
        ),
        (shop.post("/api/events", &json!({ "name": "no-such", "to": "ada" })), 404, "`no-such`"),
        (shop.submit("/sign-up", "customer=a/b&name=A&email=a%40b"), 422, "`customer`"),
        (shop.submit("/orders", "number=A-1&customer=nobody&item=x"), 404, "`nobody`"),
        (shop.get("/inbox/nobody"), 404, "subscriber `nobody` is not there"),
    ];
    for (index, (answer, status, text)) in cases.into_iter().enumerate() {
        assert_eq!(answer.status, status, "case {index}: {}", answer.body);
        assert!(answer.body.contains(text), "case {index}: {}", answer.body);
    }
}

#[test]
fn clients_speak_json() {
    let mails = MailServer::start();
    let shop = Server::start(Some(mails.post()));
    let bob = json!({ "subscriberId": "bob", "firstName": "Bob", "email": "bob@example.org" });
    assert_eq!(shop.post("/api/subscribers", &bob).status, 201);
    assert_eq!(shop.post("/api/subscribers", &bob).status, 409);

    let payload = json!({ "order": "A-7", "item": "<b>A cup</b>" });
    let event = json!({ "name": "order-shipped", "to": "bob", "payload": payload });
    assert_eq!(shop.post("/api/events", &event).status, 200);
    let page = shop.get("/api/inbox/bob?read=false").json();
    assert_eq!(page["data"][0]["subject"], "Order A-7 is on its way");
    assert!(shop.get("/inbox/bob").body.contains("&lt;b&gt;A cup&lt;/b&gt;"));

    let marks = json!({ "messageId": page["data"][0]["_id"], "markAs": "read" });
    assert_eq!(shop.post("/api/inbox/bob", &marks).status, 200);
    assert_eq!(shop.get("/api/inbox/bob/counts").json()["unread"], 0);

    let off = json!([{ "workflowId": "order-shipped", "channels": { "email": false } }]);
    assert_eq!(shop.patch("/api/preferences/bob", &json!({ "preferences": off })).status, 200);
    let preferences = shop.get("/api/preferences/bob").json();
    assert_eq!(preferences["workflows"][0]["channels"]["email"], Value::Bool(false));
    let critical = json!([{ "workflowId": "welcome", "channels": { "in_app": false } }]);
    let refused = shop.patch("/api/preferences/bob", &json!({ "preferences": critical }));
    assert!(refused.status == 400 && refused.body.contains("welcome"));
}

/// The JSON interface takes ids that are no part of a path as they are.
#[test]
fn links_lead_to_customers_with_any_id() {
    let shop = Server::start(None);
    for (id, escaped) in [("a/b?c#d", "a%2Fb%3Fc%23d"), ("\u{e9} <b>", "%C3%A9%20%3Cb%3E")] {
        assert_eq!(shop.post("/api/subscribers", &json!({ "subscriberId": id })).status, 201);
        let form = format!("number={escaped}&customer={escaped}&item=x");
        let inbox = shop.submit("/orders", &form).location.unwrap();
        assert_eq!(inbox, format!("/inbox/{escaped}"));
        let page = shop.get(&inbox);
        assert!(page.status == 200 && page.body.contains("is on its way"), "{}", page.body);
        assert!(page.body.contains(&format!("data-feed=\"{inbox}/feed\"")));
        let preferences = format!("/preferences/{escaped}");
        assert!(page.body.contains(&format!("href=\"{preferences}\"")));
        let switched = shop.submit(&preferences, "channel=email&enabled=false");
        assert_eq!(switched.location, Some(preferences));
        let read = shop.submit(&inbox, "action=read-all").location.unwrap();
        assert_eq!(shop.get(&read).status, 200);
    }
}

#[test]
fn the_answer_of_the_mail_server_decides() {
    let mails = MailServer::start();
    let shop = shop(&mails);
    shop.submit("/sign-up", "customer=eve&name=Eve&email=gone%40example.org");
    shop.submit("/sign-up", "customer=max&name=Max&email=busy%40example.org");
    for customer in ["eve", "max"] {
        shop.submit("/orders", &format!("number={customer}&customer={customer}&item=A+cup"));
    }
    let told = |page: &str| page.contains("provider_error") && page.contains("provider_retry");
    let activity = shop.wait_until("/admin/activity", told);
    let gone = SendError::recipient_gone("").to_string();
    assert!(activity.contains(&gone) && activity.contains("550"), "{activity}");
    assert!(activity.contains("451"), "{activity}");
    assert!(mails.received().is_empty());
}

#[test]
fn a_restart_writes_nothing() {
    let mails = MailServer::start();
    let shop = shop(&mails);
    let before = shop.get("/api/preferences/ada").json();
    let shop = shop.restart(Some(mails.post()));
    assert_eq!(shop.get("/api/preferences/ada").json(), before);
}

#[test]
fn the_server_stops_when_its_mail_is_sent() {
    let mails = MailServer::start();
    let shop = shop(&mails);
    shop.submit("/sign-up", "customer=sue&name=Sue&email=slow%40example.org");
    shop.submit("/orders", "number=A-1&customer=sue&item=A+cup");
    mails.wait_for_recipient("slow@");
    shop.stop();
    assert_eq!(mails.received().len(), 1);
}
