// SPDX-License-Identifier: MIT
// A recording that goes on. A browser has few connections for a server, so one of the tabs that can be seen reads the pictures, and hands them to the others.
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
		this.name = `xheap ${page.source.token}`;
		this.number = 0;
		this.isHeld = false;
		/** The newest picture. @type {any} */
		this.newest = null;
		byId("recording").hidden = false;
		byId("hold").addEventListener("click", () => {
			this.isHeld = !this.isHeld;
			this.show();
		});
		byId("flush").addEventListener("click", () => page.source.ask("flush", {trace: 0}).catch(page.fail));
		document.addEventListener("visibilitychange", () => this.join());
		this.join();
	}

	/** A tab that cannot be seen needs no pictures. */
	async join() {
		const {source} = this.page,
			{locks} = navigator;
		this.leaving?.abort();
		source.end("live");
		if (document.hidden || !this.page.trace.live) return;
		this.leaving = new AbortController();
		const {signal} = this.leaving,
			channel = new BroadcastChannel(this.name);
		signal.addEventListener("abort", () => channel.close());
		channel.onmessage = ({data}) => this.take(data);
		const read = async () => {
			for (; !signal.aborted; ) {
				const bytes = await source.live(this.number);
				if (signal.aborted || !bytes.byteLength) continue;
				this.take(bytes);
				channel.postMessage(bytes);
			}
		};
		try {
			this.take(await source.live(0));
			await (locks ? locks.request(this.name, {signal}, read) : read());
		} catch (error) {
			if (error instanceof Over) this.end(error.message);
			else if (!signal.aborted) this.page.fail(error);
		}
	}

	/** @param {ArrayBuffer} bytes an answer */
	take(bytes) {
		const [{trace: note, cells}, {trace}] = divideData(bytes);
		if (note.number <= this.number) return;
		this.number = note.number;
		this.newest = {note, trace, cells};
		this.show();
	}

	/** Shows the newest picture, unless the page holds one or somebody drags. */
	show() {
		const {page, newest} = this;
		byId("hold").textContent = this.isHeld ? "Go on" : "Hold";
		if (!newest) return;
		if (page.store.isDragging) {
			setTimeout(() => this.show(), DRAG_MS);
			return;
		}
		if (!this.isHeld && newest.cells) {
			page.goOn(newest.trace, newest.cells);
			newest.cells = null;
		}
		const {state, text} = newest.note;
		this.say(
			`${text}${this.isHeld ? ", held" : ""}, as of ${formatTime(page.trace.duration_ns)}`,
			state !== "recording",
		);
	}

	/** @param {string} text @param {boolean} isLoud */
	say(text, isLoud) {
		const chip = byId("recording-words");
		chip.textContent = safeText(text);
		chip.className = isLoud ? "chip loud" : "chip";
	}

	/** The whole trace takes the place of the recording. @param {string} text */
	async end(text) {
		const {page} = this;
		this.leaving?.abort();
		this.say(text, false);
		byId("hold").hidden = byId("flush").hidden = true;
		try {
			await page.reload();
		} catch (error) {
			page.fail(error);
		}
	}
}
