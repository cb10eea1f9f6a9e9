//! The shop, over loopback: a server, a browser of a few lines, and a mail server of a few more.

mod support;

use serde_json::{Value, json};
use support::mail_server::MailServer;
use support::server::Server;
use tidings::SendError;

const ORDERED: &str = "customer=ada&item=A+blue+teapot";

fn shop(mails: &MailServer) -> Server {
    let shop = Server::start(Some(mails.url()));
    let signed_up = shop.submit("/sign-up", "customer=ada&name=Ada&email=ada%40example.org");
    assert_eq!((signed_up.status, signed_up.location.as_deref()), (303, Some("/inbox/ada")));
    shop
}

#[test]
fn a_customer_orders_and_reads_the_inbox() {
    let mails = MailServer::start();
    let shop = shop(&mails);
    assert_eq!(shop.submit("/orders", &format!("number=A-1&{ORDERED}")).status, 303);

    let inbox = shop.get("/inbox/ada").body;
    assert!(inbox.contains("2 unread") && inbox.contains("Welcome to the shop, Ada!"));
    assert!(inbox.contains("A blue teapot (order A-1) is on its way."));
    let mail = mails.wait_for(1).remove(0);
    assert!(mail.contains("Subject: Order A-1 is on its way") && mail.contains("Dear Ada,"));
    assert!(mail.contains("To: Ada <ada@example.org>"));

    let (_, rest) = inbox.split_once("name=\"message\" value=\"").unwrap();
    let (newest, _) = rest.split_once('"').unwrap();
    shop.submit("/inbox/ada", &format!("message={newest}"));
    assert!(shop.get("/inbox/ada").body.contains("1 unread"));
    shop.submit("/inbox/ada", "");
    assert!(shop.get("/inbox/ada").body.contains("0 unread"));
}

#[test]
fn a_form_that_is_sent_twice_is_one_order() {
    let mails = MailServer::start();
    let shop = shop(&mails);
    for _ in 0..2 {
        assert_eq!(shop.submit("/orders", &format!("number=A-1&{ORDERED}")).status, 303);
    }
    assert!(shop.get("/inbox/ada").body.contains("2 unread"));
}

#[test]
fn a_customer_without_e_mail_gets_no_e_mail() {
    let mails = MailServer::start();
    let shop = shop(&mails);
    let preferences = shop.get("/preferences/ada").body;
    assert!(preferences.contains("Order shipped") && !preferences.contains("Welcome"));
    assert_eq!(preferences.matches(" checked").count(), 2);

    shop.submit("/orders", &format!("number=A-1&{ORDERED}"));
    mails.wait_for(1);
    shop.submit("/preferences/ada", "workflow=order-shipped&in_app=on");
    assert_eq!(shop.get("/preferences/ada").body.matches(" checked").count(), 1);
    shop.submit("/orders", &format!("number=A-2&{ORDERED}"));

    let reason = "filtered_by_subscriber_workflow_preference";
    let activity = shop.wait_until("/admin/activity", |page| page.contains(reason));
    assert_eq!(activity.matches("message_sent").count(), 1);
    assert_eq!(mails.received().len(), 1);
    assert!(shop.get("/inbox/ada").body.contains("order A-2"));
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
        page.body.matches("<tr>").count()
    };
    // The form sends empty fields.
    assert_eq!(rows("subscriberIds=&templates=&channels=&after=&before="), 3);
    assert_eq!(rows("subscriberIds=ada"), 2);
    assert_eq!(rows("subscriberIds=ada&templates=welcome"), 1);
    assert_eq!(rows("channels=email"), 1);
    assert_eq!(rows("channels[]=email&channels[]=in_app"), 3);
    assert_eq!(rows("before=2020-01-01"), 0);

    let first = shop.get("/admin/activity?limit=2").body;
    assert_eq!(first.matches("<tr>").count(), 2);
    assert!(first.contains("?limit=2&amp;page=1") && !first.contains("Newer"));
    let second = shop.get("/admin/activity?limit=2&page=1").body;
    assert_eq!(second.matches("<tr>").count(), 1);
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
    let shop = Server::start(Some(mails.url()));
    let bob = json!({ "subscriberId": "bob", "firstName": "Bob", "email": "bob@example.org" });
    assert_eq!(shop.post("/api/subscribers", &bob).status, 201);
    assert_eq!(shop.post("/api/subscribers", &bob).status, 409);

    let payload = json!({ "order": "A-7", "item": "<b>A cup</b>" });
    let event = json!({ "name": "order-shipped", "to": "bob", "payload": payload });
    assert_eq!(shop.post("/api/events", &event).status, 200);
    let page = shop.get("/api/inbox/bob?read=false").json();
    assert_eq!(page["data"][0]["subject"], "Order A-7");
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
    let gone = format!("{}permanent error (550)", SendError::recipient_gone(""));
    assert!(activity.contains(&gone) && activity.contains("transient error (451)"), "{activity}");
    assert!(mails.received().is_empty());
}

#[test]
fn a_restart_writes_nothing() {
    let mails = MailServer::start();
    let shop = shop(&mails);
    let before = shop.get("/api/preferences/ada").json();
    let shop = shop.restart(Some(mails.url()));
    assert_eq!(shop.get("/api/preferences/ada").json(), before);
}

#[test]
fn the_server_stops_when_its_mail_is_sent() {
    let mails = MailServer::start();
    let shop = shop(&mails);
    shop.submit("/sign-up", "customer=sue&name=Sue&email=slow%40example.org");
    shop.submit("/orders", "number=A-1&customer=sue&item=A+cup");
    shop.stop();
    assert_eq!(mails.received().len(), 1);
}

#[test]
fn the_front_page_shows_a_handler_of_the_shop() {
    let readme = include_str!("../../../README.md");
    let (_, handler) = readme.split_once("```rust,ignore\n").unwrap();
    let (handler, _) = handler.split_once("```").unwrap();
    assert!(include_str!("../src/api.rs").contains(handler));
}
