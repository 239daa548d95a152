// A page that was opened as a file may start no worker: the search then runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.answer = data => this.dispatchEvent(new MessageEvent("message", {data}));
      this.loaded = new Promise(resolve => { this.frame.onload = resolve; });
      const answer = "function postMessage(data) { frameElement.answer(data); }";
      this.frame.srcdoc = `<script>${answer}</script><script src="${url}"></script>`;
      document.body.append(this.frame);
    }
    postMessage(data) {
      this.loaded.then(() => {
        this.frame.contentWindow.dispatchEvent(new MessageEvent("message", {data}));
      });
    }
  };
}
