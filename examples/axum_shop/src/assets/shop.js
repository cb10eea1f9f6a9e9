"use strict";
// The pages work without this script. With it, forms are sent in place, and the inbox follows.

const one = (selector, within = document) => within.querySelector(selector);

let quiet;
function say(text) {
  one("#status").textContent = text;
  clearTimeout(quiet);
  quiet = setTimeout(() => { one("#status").textContent = ""; }, 5000);
}

// ---- Times: how long ago, in the language of the reader. ----

const UNITS = [["week", 604800], ["day", 86400], ["hour", 3600], ["minute", 60]];
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

function tellTimes(within = document) {
  for (const time of within.querySelectorAll("time")) {
    const at = new Date(time.dateTime);
    const seconds = Math.round((at - Date.now()) / 1000);
    const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
    time.title = exact.format(at);
    time.textContent =
      unit === "second" ? (seconds > 0 ? "in a moment" : "just now")
        : relative.format(Math.trunc(seconds / size), unit);
  }
}

// ---- Forms: sent in place. What they change comes back by the feed, or is shown here. ----

async function send(form, button) {
  const fields = new URLSearchParams(new FormData(form, button));
  button.setAttribute("aria-busy", "true");
  try {
    // A redirect is the answer to a form that was taken.
    const answer = await fetch(form.getAttribute("action") ?? location.href,
      { method: "POST", body: fields, redirect: "manual" });
    if (answer.type === "opaqueredirect") return true;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    say(one("#refusal", page)?.textContent ?? "That did not work.");
  } catch {
    say("The shop does not answer. Please try again.");
  } finally {
    button.removeAttribute("aria-busy");
  }
  return false;
}

function flip(toggle) {
  const on = toggle.getAttribute("aria-checked") !== "true";
  toggle.setAttribute("aria-checked", on);
  toggle.value = !on;
  say("Saved.");
}

document.addEventListener("submit", async (event) => {
  const { target: form, submitter: button } = event;
  const inPlace = button?.role === "switch" || (one(".messages") && form.method === "post");
  if (!inPlace) return;
  event.preventDefault();
  if (button.getAttribute("aria-busy")) return;
  const taken = await send(form, button);
  if (taken && button.role === "switch") flip(button);
});

// One menu is open at a time, and Escape or a click elsewhere closes it.
const closeMenus = (but) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (menu !== but) menu.open = false;
  }
};
document.addEventListener("click", (event) => closeMenus(event.target.closest("details.menu")));
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const menu = document.activeElement?.closest("details.menu[open]");
  closeMenus();
  menu?.querySelector("summary").focus();
});

// ---- The inbox: follows its feed. ----

const title = document.title;

function follow(list) {
  const live = one(".live");
  let last = list.dataset.since;
  let wait = 1000;

  const show = (state, text) => {
    live.hidden = false;
    live.dataset.state = state;
    live.textContent = text;
  };

  const connect = () => {
    const feed = new EventSource(`${list.dataset.feed}?since=${last}`);
    feed.onopen = () => { wait = 1000; show("live", "Live"); };
    feed.onmessage = (event) => {
      last = event.lastEventId;
      const { unread, changes } = JSON.parse(event.data);
      changes.forEach((change) => apply(list, change));
      showCounts(list, unread);
    };
    // The server does not know what has changed since, so the page is loaded again.
    feed.addEventListener("reset", () => location.reload());
    feed.onerror = () => {
      show("lost", "Connecting again");
      // A browser gives up when the answer is an error. It goes on from the last event here.
      feed.close();
      setTimeout(connect, wait);
      wait = Math.min(wait * 2, 30000);
    };
  };
  connect();
}

// Shows a message as it is in this folder, or takes it away.
function apply(list, { id, folder, html }) {
  const old = document.getElementById(`m-${id}`);
  const focus = old?.contains(document.activeElement);
  if (folder !== list.dataset.folder) {
    const next = old?.nextElementSibling ?? old?.previousElementSibling ?? one("#content");
    old?.remove();
    if (focus) next.focus();
    return;
  }
  const template = document.createElement("template");
  template.innerHTML = html; // Written and escaped by the server.
  const item = template.content.firstElementChild;
  tellTimes(item);
  if (old?.dataset.at === item.dataset.at) {
    old.replaceWith(item);
    if (focus) item.focus();
  } else {
    old?.remove();
    insert(list, item);
  }
}

// The newest is first. A message of another page is left out.
function insert(list, item) {
  const place = [...list.children].find((other) => other.dataset.at <= item.dataset.at);
  const isFirst = place === (list.firstElementChild ?? undefined);
  if (isFirst && !("first" in list.dataset)) return;
  if (!place && !isFirst && !("last" in list.dataset)) return;
  list.insertBefore(item, place ?? null);
  item.classList.add("arrived");
  say(`New: ${one("h2", item).lastChild.textContent}`);
}

function showCounts(list, unread) {
  one("#unread").textContent = unread;
  one("#unread").parentElement.hidden = unread === 0;
  one(".empty").hidden = list.children.length > 0;
  document.title = unread ? `(${unread}) ${title}` : title;
}

tellTimes();
setInterval(tellTimes, 30000);
const list = one(".messages");
if (list) {
  showCounts(list, Number(one("#unread").textContent));
  follow(list);
}
