//! The feed of an inbox, over loopback.

use crate::support::server::Server;
use serde_json::Value;

const SIGN_UP: &str = "customer=ada&name=Ada&email=ada%40example.org";

fn shop() -> Server {
    let shop = Server::start(None);
    assert_eq!(shop.submit("/sign-up", SIGN_UP).status, 303);
    shop
}

fn order(shop: &Server, number: &str) {
    let form = format!("number={number}&customer=ada&item=A+cup");
    assert_eq!(shop.submit("/orders", &form).status, 303);
}

fn act(shop: &Server, action: &str, message: &Value) {
    let form = format!("action={action}&message={}", message.as_str().unwrap());
    assert_eq!(shop.submit("/inbox/ada", &form).status, 303);
}

fn since(page: &str) -> String {
    let (_, rest) = page.split_once("data-since=\"").unwrap();
    rest.split_once('"').unwrap().0.to_owned()
}

#[test]
fn an_open_inbox_follows() {
    let shop = shop();
    let cursor = since(&shop.get("/inbox/ada").body);
    let mut feed = shop.feed(&format!("/inbox/ada/feed?since={cursor}"), None);

    order(&shop, "A-1");
    let told = feed.next().unwrap().json();
    assert_eq!((&told["unread"], &told["changes"][0]["folder"]), (&2.into(), &"inbox".into()));
    let item = told["changes"][0]["html"].as_str().unwrap();
    assert!(item.contains("Order A-1 is on its way") && item.contains("Mark as read"), "{item}");
    assert!(shop.get("/inbox/ada").body.contains(item), "the page shows the same");

    let message = &told["changes"][0]["id"];
    for (action, unread, folder) in [
        ("read", 1, "inbox"),
        ("unread", 2, "inbox"),
        ("snooze-day", 1, "snoozed"),
        ("archive", 1, "archive"),
    ] {
        act(&shop, action, message);
        let told = feed.next().unwrap().json();
        let [change] = &told["changes"].as_array().unwrap()[..] else { panic!("{action}: {told}") };
        assert_eq!((&change["id"], &told["unread"]), (message, &unread.into()), "{action}");
        assert_eq!(change["folder"], folder, "{action}");
    }
    act(&shop, "delete", message);
    let told = feed.next().unwrap().json();
    assert!(
        told["changes"][0]["id"] == *message && told["changes"][0]["folder"].is_null(),
        "{told}"
    );
}

#[test]
fn a_browser_that_comes_back_has_missed_nothing() {
    let shop = shop();
    let cursor = since(&shop.get("/inbox/ada").body);
    let mut feed = shop.feed(&format!("/inbox/ada/feed?since={cursor}"), None);
    order(&shop, "A-1");
    let first = feed.next().unwrap();
    drop(feed);
    order(&shop, "A-2");
    act(&shop, "read", &first.json()["changes"][0]["id"]);
    let shop = shop.restart(None);
    order(&shop, "A-3");

    // A browser asks for the same URL, with the id of the last event.
    let mut feed = shop.feed(&format!("/inbox/ada/feed?since={cursor}"), Some(&first.id));
    let told = feed.next().unwrap().json();
    let items = told["changes"].as_array().unwrap();
    let items: Vec<_> = items.iter().map(|change| change["html"].as_str().unwrap()).collect();
    assert_eq!((items.len(), &told["unread"]), (3, &3.into()), "{told}");
    for (number, count) in [("A-1", 1), ("A-2", 1), ("A-3", 1)] {
        let of = items.iter().filter(|item| item.contains(&format!("Order {number}")));
        assert_eq!(of.count(), count, "{number}");
    }
    drop(feed);
}

#[test]
fn a_browser_that_knows_more_than_the_shop_loads_the_page_again() {
    let shop = shop();
    let mut feed = shop.feed("/inbox/ada/feed", None);
    order(&shop, "A-1");
    let mut newest = feed.next().unwrap().id;
    // Another copy of the file: the same inbox, with fewer changes.
    newest.replace_range(50..66, "00000000000000ff");
    let mut feed = shop.feed("/inbox/ada/feed", Some(&newest));
    let event = feed.next().unwrap();
    assert_eq!(event.name, "reset");
    let mut feed = shop.feed("/inbox/ada/feed", Some(&event.id));
    order(&shop, "A-2");
    assert_eq!(feed.next().unwrap().json()["changes"].as_array().unwrap().len(), 1);
}

#[test]
fn a_feed_of_nobody_is_refused() {
    let shop = shop();
    shop.submit("/sign-up", "customer=bob&name=Bob&email=bob%40example.org");
    for (path, status) in [
        ("/inbox/nobody/feed", 404),
        ("/inbox/ada/feed?since=", 422),
        ("/inbox/ada/feed?since=x", 422),
    ] {
        assert_eq!(shop.get(path).status, status, "{path}");
    }
}

#[test]
fn a_stop_ends_the_feeds() {
    let shop = shop();
    let mut feed = shop.feed("/inbox/ada/feed", None);
    let folder = shop.stop();
    assert!(feed.next().is_none());
    drop(folder);
}

#[test]
fn pages_load_nothing_from_elsewhere() {
    let shop = shop();
    for path in ["/", "/inbox/ada", "/preferences/ada", "/admin/activity", "/inbox/nobody"] {
        let page = shop.get(path);
        assert!(page.head.contains("content-security-policy: default-src 'none'"), "{path}");
        assert!(!page.body.contains("<style") && !page.body.contains("style="), "{path}");
        assert!(!page.body.contains("onclick") && !page.body.contains("http:"), "{path}");
    }
    for (path, kind) in [
        ("/assets/shop.css", "text/css"),
        ("/assets/shop.js", "text/javascript"),
        ("/assets/icon.svg", "image/svg+xml"),
    ] {
        let asset = shop.get(path);
        assert!(asset.status == 200 && asset.head.contains(kind), "{path}: {}", asset.head);
    }
}
