// Fill the parts of the page that change, as the server sends them.
"use strict";

const RETRY_MILLISECONDS = 3000;
const address = document.body.dataset.events;

function hideToken() {
  const here = new URL(window.location.href);
  if (here.searchParams.has("token")) {
    here.searchParams.delete("token");
    window.history.replaceState(null, "", here);
  }
}

function say(text) {
  const place = document.getElementById("connection");
  if (place.textContent !== text) place.textContent = text;
}

// Replace what an element holds; what is unfolded stays unfolded, and the focus stays where it is.
function fill(element, html) {
  const unfolded = [...element.querySelectorAll("details[open][id]")].map((one) => one.id);
  const focused = element.contains(document.activeElement) ? document.activeElement.closest("[id]") : null;
  const summary = document.activeElement.tagName === "SUMMARY";
  element.innerHTML = html;  // made and escaped by the server
  for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
  if (focused && focused !== element) {
    const again = document.getElementById(focused.id);
    (summary ? again?.querySelector("summary") : again)?.focus();
  }
}

function show(parts) {
  for (const [name, html] of Object.entries(parts)) {
    if (name === "title") document.title = html;
    else if (name === "audits") offerReload(html);
    else {
      const element = document.getElementById(name);
      if (element) fill(element, html);
    }
  }
}

function offerReload(audits) {
  const place = document.getElementById("new-audits");
  if (audits === document.body.dataset.audits) place.replaceChildren();
  else if (!place.firstChild) {
    const link = document.createElement("a");
    link.href = "/";
    link.textContent = "show them";
    place.replaceChildren("There are other audits now: ", link);
  }
}

function connect() {
  const source = new EventSource(address);
  source.addEventListener("parts", (event) => {
    show(JSON.parse(event.data));
    say("");
    document.body.dataset.connected = "yes";
  });
  source.addEventListener("problem", (event) => say(JSON.parse(event.data)));
  source.addEventListener("error", () => {
    document.body.dataset.connected = "no";
    say("The connection to lidp serve is lost; this page shows what it last said, and tries again.");
    source.close();
    window.setTimeout(connect, RETRY_MILLISECONDS);
  });
}

hideToken();
if (address) connect();
