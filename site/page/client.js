// Asks the worker, and ends it where it hangs or where somebody wants it to stop.
// Between two signs of life. Reading a header takes seconds; what takes longer tells how far it is.
const ANSWERS_WITHIN = 300_000;

export class Client extends EventTarget {
  #worker;
  #waiting = new Map();
  #ids = 0;
  #watch;

  constructor() {
    super();
    this.#start();
  }

  #start() {
    this.started = null;
    this.#worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    this.#worker.onmessage = ({ data }) => this.#take(data);
    this.#worker.onerror = (event) => this.#end(event.message || "Python stopped.");
    // Starting has no limit: over a slow line the first visit takes minutes.
    this.#expect(0);
  }

  #expect(time) {
    clearTimeout(this.#watch);
    if (time) this.#watch = setTimeout(() => this.stop("It gave no sign of life for minutes and was ended."), time);
  }

  #take(data) {
    if (data.started !== undefined) {
      this.started = data.started;
      this.#expect(this.#waiting.size ? ANSWERS_WITHIN : 0);
      this.dispatchEvent(new Event("started"));
      return;
    }
    if (data.failed) {
      this.#end(data.failed, true);
      return;
    }
    const asked = this.#waiting.get(data.id);
    if (!asked) return;
    if (data.progress) {
      this.#expect(ANSWERS_WITHIN);
      asked.progress?.(data.progress);
      return;
    }
    this.#waiting.delete(data.id);
    this.#expect(this.#waiting.size ? ANSWERS_WITHIN : 0);
    asked.answer(data);
    // A fault of ours, or of memory: what Python holds is not to be trusted any more.
    if (data.fault) this.#end("", false, true);
  }

  // Everybody who waits is told why; a new worker begins, unless Python cannot be started at all.
  #end(says, final = false, quiet = false) {
    this.#worker.terminate();
    this.#expect(0);
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const asked of waiting) asked.answer({ ok: false, ended: true, says, hint: "" });
    if (final) {
      this.failed = says;
      this.dispatchEvent(new CustomEvent("failed", { detail: says }));
      return;
    }
    this.dispatchEvent(new CustomEvent("ended", { detail: quiet ? "" : says }));
    this.#start();
  }

  stop(says = "Stopped.") {
    this.#end(says);
  }

  ask(question, progress) {
    const id = ++this.#ids;
    return new Promise((answer) => {
      this.#waiting.set(id, { answer, progress });
      if (this.started !== null) this.#expect(ANSWERS_WITHIN);
      this.#worker.postMessage({ ...question, id });
    });
  }

  // About a folder: what ends Python by its depth is told by its name, and left out of the next try. mount: makes the
  // folder again, in a new Python, and gives its place. The answer has the place and what was left out. spent: seconds
  // that it took before; those of the tries are added.
  async askOfFolder(question, folder, mount, progress) {
    const deep = [...(question.deep ?? [])];
    const begun = performance.now();
    for (;;) {
      const spent = (question.spent ?? 0) + (performance.now() - begun) / 1000;
      const answer = await this.ask({ ...question, folder, deep, spent }, progress);
      if (!answer.deep || !answer.at || deep.includes(answer.at)) return { ...answer, folder, left: deep };
      deep.push(answer.at);
      folder = await mount();
      if (!folder) return { ok: false, ended: true, says: "", hint: "", folder, left: deep };
    }
  }

  mount(files) {
    return this.ask({ mount: true, files });
  }
}
