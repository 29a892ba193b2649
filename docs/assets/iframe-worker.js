// From file:// browsers start no Worker, and the search is one: there it runs in an invisible frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      this.ready = new Promise(resolve => {
        frame.onload = () => {
          const room = frame.contentWindow
          room.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
          const script = room.document.createElement("script")
          script.onload = () => resolve(room)
          script.src = url
          room.document.body.append(script)
        }
      })
      document.body.append(frame)
    }

    postMessage(data) {
      this.ready.then(room => room.dispatchEvent(new MessageEvent("message", { data })))
    }
  }
}
