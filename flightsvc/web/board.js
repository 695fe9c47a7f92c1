"use strict";
(() => {
  const AGAIN_MS = 3000;
  const board = document.getElementById("board");
  const line = document.getElementById("line");
  let source = null;
  let waiting = 0;

  const say = (is, text) => {
    line.dataset.is = is;
    line.textContent = text;
  };

  // not while somebody marks a text to copy it
  const show = (html) => {
    const marked = getSelection();
    if (marked.isCollapsed || !board.contains(marked.anchorNode)) board.innerHTML = html;
  };

  const listen = () => {
    close();
    source = new EventSource("flights/events" + location.search);
    source.addEventListener("board", (event) => {
      say("live", "live");
      show(JSON.parse(event.data).html);
    });
    source.onerror = () => {
      say("lost", "no connection, trying again");
      // refused: the sign-in is over, or too many pages are open here; a browser gives up then
      if (source.readyState === EventSource.CLOSED) waiting = setTimeout(look, AGAIN_MS);
    };
  };

  const look = async () => {
    try {
      const answer = await fetch(location.href);
      if (answer.status === 401) return location.reload();
      if (answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        show(page.getElementById("board").innerHTML);
      }
    } catch {
      // nobody is there: again
    }
    listen();
  };

  const close = () => {
    clearTimeout(waiting);
    if (source) source.close();
    source = null;
  };

  // a page that nobody sees costs nothing
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : listen()));
  if (!document.hidden) listen();
})();
