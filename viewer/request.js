// SPDX-License-Identifier: MIT
// The only access to data: a server, or data inside this file, with the same methods. README.md describes the answers.

import {readJson} from "./decode.js";

/** How long a request may take. Milliseconds. */
const PATIENCE_MS = 600000;
/** The status of an answer that is being made, and how long to wait before asking again: the server has waited, too. That of a recording that has ended. */
const BEING_MADE = 202,
	PROGRESS_MS = 20,
	OVER = 410;

/** A request that a newer one has replaced. */
export class Replaced extends Error {}
/** A recording has ended. */
export class Over extends Error {}
/** The server cannot be reached. */
export class Unreachable extends Error {}

/** @implements {Source} */
class Server {
	/** @param {string} token @param {(share: number, secondsLeft: number) => void} progressed while the server makes what was asked for */
	constructor(token, progressed) {
		this.isServer = true;
		this.progressed = progressed;
		this.token = token;
		/** The time as of which a recording is asked; undefined: it is not held. @type {number | undefined} */
		this.held = undefined;
		this.page = Math.random().toString(36).slice(2);
		this.number = 0;
		/** @type {Map<string, AbortController>} */
		this.running = new Map();
	}

	/** @param {string} request that nobody waits for any more */
	end(request) {
		this.running.get(request)?.abort(new Replaced("replaced"));
	}

	/** @param {string} name @param {Record<string, string | number | undefined>} query @param {string} [lane] which requests this one replaces @returns {Promise<Response>} */
	async ask(name, query, lane = "") {
		this.end(name + lane);
		const controller = new AbortController();
		this.running.set(name + lane, controller);
		/** @type {typeof query} */
		const all = {...query, held: this.held},
			words = Object.entries(all).filter(([, value]) => value !== undefined && value !== "");
		const address = `${name}?${new URLSearchParams(words.map(([key, value]) => [key, String(value)]))}`;
		const headers = {
			"X-Xheap-Token": this.token,
			"X-Xheap-Page": this.page + lane,
			"X-Xheap-Request": String(++this.number),
		};
		const signal = AbortSignal.any([controller.signal, AbortSignal.timeout(PATIENCE_MS)]);
		/** @type {Response} */
		let response;
		try {
			for (;;) {
				response = await fetch(address, {
					headers,
					signal,
					cache: "no-store",
					credentials: "omit",
					referrerPolicy: "no-referrer",
				});
				if (response.status !== BEING_MADE) break;
				const {share, seconds_left: seconds} = await response.json();
				this.progressed(Number(share) || 0, Number(seconds) || 0);
				await new Promise((done) => setTimeout(done, PROGRESS_MS));
			}
		} catch (error) {
			if (controller.signal.aborted) throw new Replaced("replaced");
			throw signal.aborted ? new Error("the server took too long") : new Unreachable("the server has ended");
		}
		if (response.ok) return response;
		const said = (await response.text()).split("\n")[0].slice(0, 300) || `the server answers ${response.status}`;
		throw new (response.status === OVER ? Over : Error)(said);
	}

	/** @param {string} name @param {number} trace @param {Record<string, string>} [query] */
	async json(name, trace, query = {}) {
		return readJson(await (await this.ask(name, {trace, ...query}, query.offset && `rows${query.offset}`)).text());
	}

	/** @param {number} seen number of a picture @returns {Promise<ArrayBuffer>} a newer one; empty: there is none yet */
	async live(seen) {
		return (await this.ask("live", {trace: 0, seen})).arrayBuffer();
	}

	/** @param {number} trace @param {CellsQuery} query */
	async cells(trace, {from, to, n, bounds, filter, node, lane = node && "node"}) {
		const query = {trace, from, to, n, bounds: bounds?.join(","), filter, node};
		return (await this.ask("cells", query, lane)).arrayBuffer();
	}
}

/** @implements {Source} */
class Embedded {
	/** @param {{trace: any, cells: ArrayBuffer}[]} parts */
	constructor(parts) {
		this.isServer = false;
		this.parts = parts;
	}

	/** @param {string} name @param {number} trace */
	async json(name, trace) {
		if (name !== "trace") throw new Error("this file does not say that; xheap view does");
		if (!this.parts[trace]) throw new Error("this file has no such trace");
		return this.parts[trace].trace;
	}

	/** @param {number} trace @param {CellsQuery} query */
	async cells(trace, {filter}) {
		if (filter) throw new Error("this file cannot be filtered by single blocks; xheap view can");
		return this.parts[trace].cells;
	}
}

/** @param {string} text base64 of gzip @returns {Promise<ArrayBuffer>} */
async function unpack(text) {
	const bytes = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
	return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

/** @param {ArrayBuffer} buffer @returns {{trace: any, cells: ArrayBuffer}[]} */
export function divideData(buffer) {
	const view = new DataView(buffer),
		parts = [];
	const aligned = (/** @type {number} */ at) => (at + 7) & ~7;
	let at = 4;
	for (let left = view.getUint32(0, true); left > 0; left--) {
		const sizes = [view.getUint32(at, true), view.getUint32(at + 4, true)];
		const json = aligned(at + 8),
			cells = aligned(json + sizes[0]);
		parts.push({
			trace: readJson(new TextDecoder().decode(new Uint8Array(buffer, json, sizes[0]))),
			cells: buffer.slice(cells, cells + sizes[1]),
		});
		at = cells + sizes[1];
	}
	return parts;
}

const TOKEN = "xheap-token";

/** Moves the token from the address to the session's storage, so that a copied address has none. @returns {string} */
function takeToken() {
	const found = /^#token=([\w-]+)&?(.*)$/.exec(location.hash);
	if (found) {
		sessionStorage.setItem(TOKEN, found[1]);
		history.replaceState(null, "", "#" + found[2]);
	}
	return sessionStorage.getItem(TOKEN) ?? "";
}

/** @param {string} token */
export function keepToken(token) {
	sessionStorage.setItem(TOKEN, token.trim().replace(/^.*#token=/, ""));
}

/** @param {(share: number, secondsLeft: number) => void} progressed @returns {Promise<Source>} */
export async function openSource(progressed) {
	const data = document.getElementById("data");
	if (data?.textContent?.trim()) return new Embedded(divideData(await unpack(data.textContent)));
	return new Server(takeToken(), progressed);
}
