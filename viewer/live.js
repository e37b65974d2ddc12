// SPDX-License-Identifier: MIT
// A recording that goes on. A browser has few connections to a server: of the tabs that can be seen, one reads pictures for all.
import {byId, onClick} from "./elements.js";
import {formatTime} from "./format.js";
import {safeText} from "./hostile.js";
import {divideData, Over} from "./request.js";

/** What pictures that go on do not say. */
export const HOLD_FIRST = "Hold the picture to see this.";
/** How long a picture waits for the end of a drag. Milliseconds. */
const DRAG_MS = 200;

export class Live {
	/** @param {any} page whose picture goes on */
	constructor(page) {
		this.page = page;
		this.isHeld = this.isOver = false;
		/** The newest picture. @type {any} */
		this.newest = {note: {number: 0}};
		/** The one that is on the page. @type {any} */
		this.shown = undefined;
		this.leaving = new AbortController();
		byId("recording").hidden = false;
		onClick("hold", () => (this.isHeld ? this.goOn() : this.hold()));
		onClick("flush", () => page.source.ask("flush", {trace: 0}));
		document.addEventListener("visibilitychange", () => this.join());
		this.join();
	}

	/** Reads, or waits for its turn, while the tab can be seen. */
	async join() {
		const {page} = this,
			{source} = page;
		this.leaving.abort();
		source.end("live");
		if (document.hidden || this.isOver) return;
		const {signal} = (this.leaving = new AbortController()),
			channel = new BroadcastChannel(`xheap ${source.token}`);
		signal.addEventListener("abort", () => channel.close());
		channel.onmessage = ({data}) => this.take(data);
		const read = async () => {
			while (!signal.aborted) {
				const bytes = await source.live(this.newest.note.number);
				if (signal.aborted || !bytes.byteLength) continue;
				this.take(bytes);
				channel.postMessage(bytes);
			}
		};
		try {
			this.take(await source.live(0));
			await (navigator.locks?.request(channel.name, {signal}, read) ?? read());
		} catch (error) {
			if (error instanceof Over) this.end(error.message);
			else if (!signal.aborted) page.fail(error);
		}
	}

	/** @param {ArrayBuffer} bytes an answer */
	take(bytes) {
		const [{trace: note, cells}, {trace}] = divideData(bytes);
		if (note.number <= this.newest.note.number) return;
		this.newest = {note, trace, cells};
		this.show();
	}

	/** The trace as of the shown picture takes its place: it has all that a trace has. */
	async hold() {
		const {page} = this,
			at = page.trace.duration_ns;
		this.isHeld = true;
		this.show();
		page.source.held = at;
		const isShown = await page.reload(() => page.source.held === at);
		// Somebody may have gone on, and held a later one.
		if (page.source.held !== at) return;
		if (isShown) this.stay();
		else page.source.held = undefined;
		this.show();
	}

	/** Now becomes the end of the trace. */
	stay() {
		const {trace, store} = this.page,
			{selection} = store.state,
			at = trace.duration_ns;
		if (selection.kind === "peak") store.set({selection: {kind: "moment", at}}, "replace");
		else if (selection.kind === "window" && selection.to === Infinity)
			store.set({selection: {...selection, to: at}}, "replace");
	}

	/** What was selected at the end of the held trace goes on, too. */
	goOn() {
		const {page} = this,
			{selection} = page.store.state,
			{held} = page.source;
		this.isHeld = false;
		this.shown = page.source.held = undefined;
		if (selection.kind === "moment" && selection.at === held) page.store.set({selection: {kind: "peak"}}, "replace");
		if (selection.kind === "window" && selection.to === held)
			page.store.set({selection: {...selection, to: Infinity}}, "replace");
		// The same number is another block later.
		page.store.set({block: ""}, "replace");
		this.show();
	}

	/** Shows the newest picture, unless one is held or somebody drags. */
	show() {
		const {page, newest, isHeld} = this,
			{state, text} = newest.note;
		byId("hold").textContent = isHeld ? "Go on" : "Hold";
		if (page.store.isDragging) {
			setTimeout(() => this.show(), DRAG_MS);
			return;
		}
		if (!isHeld && newest.cells && newest !== this.shown) page.goOn(newest.trace, newest.cells);
		if (!isHeld) this.shown = newest;
		this.say(`${text}${isHeld ? ", held" : ""}, as of ${formatTime(page.trace.duration_ns)}`, state);
	}

	/** @param {string} text @param {string} state */
	say(text, state) {
		const chip = byId("recording-words");
		chip.textContent = safeText(text);
		chip.className = state === "recording" ? "chip" : "chip loud";
	}

	/** The whole trace takes the place of the recording. @param {string} text */
	async end(text) {
		this.leaving.abort();
		this.isOver = true;
		this.page.source.held = undefined;
		this.say(text, "recording");
		this.page.lacking = "The recording has ended; its trace is being read …";
		this.page.redraw();
		byId("hold").hidden = byId("flush").hidden = true;
		if (await this.page.reload()) this.stay();
	}
}
