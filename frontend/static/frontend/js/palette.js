// The command palette: a list of places, asked for when it first opens, narrowed while one types, chosen by arrow keys.
"use strict";
(() => {
  const MOST_SHOWN = 12, PAUSE_MS = 200;
  const opener = document.getElementById("open-palette");
  const dialog = document.createElement("dialog");
  dialog.id = "palette";
  dialog.setAttribute("aria-label", "Command palette");
  dialog.innerHTML = `
    <input id="palette-text" role="combobox" aria-label="Go to" aria-expanded="false" aria-controls="palette-places"
      aria-autocomplete="list" aria-describedby="palette-help" autocomplete="off" autocapitalize="none" spellcheck="false"
      maxlength="100" placeholder="Page, allocation, project or GPU">
    <div id="palette-places" role="listbox" aria-label="Places" hidden></div>
    <p id="palette-status" class="quiet" role="status"></p>
    <form method="dialog" class="actions">
      <small id="palette-help">Arrow keys choose, Enter opens.</small><button>Close</button>
    </form>`;
  document.body.append(dialog);
  const field = document.getElementById("palette-text");
  const list = document.getElementById("palette-places");
  const status = document.getElementById("palette-status");
  let places = [], isComplete = true, asked = null, ready = Promise.resolve(), active = 0, timer = 0;

  // What does not fit one answer is asked for with what was typed.
  async function load(text) {
    asked = text;
    try {
      const response = await fetch(`${opener.dataset.source}?${new URLSearchParams({ q: text })}`);
      if (!response.ok || response.redirected) throw new Error(String(response.status));
      const found = await response.json();
      const known = new Set(places.map((place) => place.url));
      places.push(...found.places.filter((place) => !known.has(place.url)));
      if (!text) isComplete = found.is_complete;
      show();
    } catch {
      asked = null;
      status.textContent = "The list could not be loaded. Reload the page, or use the menu.";
    }
  }
  function matches() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const first = words.join(" ");
    return places
      .filter((place) => words.every((word) => `${place.title} ${place.detail}`.toLowerCase().includes(word)))
      .map((place) => [place.title.toLowerCase().startsWith(first) ? 0 : place.title.toLowerCase().includes(first) ? 1 : 2, place])
      .sort(([one], [other]) => one - other)
      .map(([, place]) => place);
  }
  function show() {
    const found = matches();
    list.replaceChildren(...found.slice(0, MOST_SHOWN).map((place, number) => {
      const link = document.createElement("a");
      Object.assign(link, { id: `palette-${number}`, href: place.url, role: "option", tabIndex: -1 });
      const detail = document.createElement("small");
      detail.textContent = place.detail;
      link.append(`${place.title} `, detail);
      return link;
    }));
    list.hidden = !found.length;
    field.setAttribute("aria-expanded", String(!list.hidden));
    status.textContent = !found.length ? "Nothing found. Try another word."
      : found.length > MOST_SHOWN ? `${MOST_SHOWN} of ${found.length} shown. Type to narrow.` : `${found.length} found.`;
    choose(0);
  }
  function choose(number) {
    const options = [...list.children];
    active = options.length ? (number + options.length) % options.length : 0;
    options.forEach((option, index) => option.setAttribute("aria-selected", String(index === active)));
    if (!options.length) return field.removeAttribute("aria-activedescendant");
    field.setAttribute("aria-activedescendant", options[active].id);
    options[active].scrollIntoView({ block: "nearest" });
  }
  function open() {
    if (document.querySelector("dialog[open]")) return;
    field.value = "";
    dialog.showModal();
    field.focus();
    if (asked === null) ready = load("");
    else show();
  }

  opener.addEventListener("click", open);
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey || event.key.toLowerCase() !== "k") return;
    event.preventDefault();
    if (dialog.open) dialog.close();
    else open();
  });
  field.addEventListener("input", () => {
    show();
    clearTimeout(timer);
    const text = field.value.trim();
    if (!isComplete && text && text !== asked) timer = setTimeout(() => (ready = load(text)), PAUSE_MS);
  });
  field.addEventListener("keydown", async (event) => {
    if (event.isComposing) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      choose(active + (event.key === "ArrowDown" ? 1 : -1));
    } else if (event.key === "Enter") {
      event.preventDefault();
      await ready;
      list.children[active]?.click();
    }
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
})();
