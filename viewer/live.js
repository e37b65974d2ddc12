// SPDX-License-Identifier: MIT
// A recording that goes on. A browser has few connections to a server: of the tabs that can be seen, one reads pictures for all.
import {byId} from "./elements.js";
import {formatTime} from "./format.js";
import {safeText} from "./hostile.js";
import {divideData, Over} from "./request.js";

/** What a recording cannot say yet. */
export const ENDED_FIRST = "This is known when the recording has ended.";
/** How long a picture waits for the end of a drag. Milliseconds. */
const DRAG_MS = 200;

export class Live {
	/** @param {any} page whose picture goes on */
	constructor(page) {
		this.page = page;
		this.isHeld = false;
		/** The newest picture. @type {any} */
		this.newest = {note: {number: 0}};
		this.leaving = new AbortController();
		byId("recording").hidden = false;
		byId("hold").addEventListener("click", () => {
			this.isHeld = !this.isHeld;
			this.show();
		});
		byId("flush").addEventListener("click", () => page.source.ask("flush", {trace: 0}));
		document.addEventListener("visibilitychange", () => this.join());
		this.join();
	}

	/** Reads, or waits for its turn, while the tab can be seen. */
	async join() {
		const {page} = this,
			{source} = page;
		this.leaving.abort();
		source.end("live");
		if (document.hidden || !page.trace.live) return;
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

	/** Shows the newest picture, unless one is held or somebody drags. */
	show() {
		const {page, newest, isHeld} = this,
			{state, text} = newest.note;
		byId("hold").textContent = isHeld ? "Go on" : "Hold";
		if (page.store.isDragging) {
			setTimeout(() => this.show(), DRAG_MS);
			return;
		}
		if (!isHeld && newest.cells) page.goOn(newest.trace, newest.cells);
		if (!isHeld) newest.cells = null;
		this.say(`${text}${isHeld ? ", held" : ""}, as of ${formatTime(page.trace.duration_ns)}`, state);
	}

	/** @param {string} text @param {string} state */
	say(text, state) {
		byId("recording-words").textContent = safeText(text);
		byId("recording-words").className = state === "recording" ? "chip" : "chip loud";
	}

	/** The whole trace takes the place of the recording. @param {string} text */
	async end(text) {
		this.leaving.abort();
		this.say(text, "recording");
		byId("hold").hidden = byId("flush").hidden = true;
		await this.page.reload();
	}
}
