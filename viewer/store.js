// SPDX-License-Identifier: MIT
// The state of the page: one object. Views read it and set it; the address has all of it, so an address is a picture, and each step can be undone.
import {AIFO, AIFI, CLASSES} from "./cells.js";

export const WHOLE_RUN = {kind: /** @type {const} */ ("window"), from: -1, to: Infinity, classes: AIFI | AIFO};

/** The key of blocks that were never freed, among lifetimes. */
export const NEVER_FREED = "40";

/** In the order of their keys. */
export const VIEW_NAMES = /** @type {const} */ (["flame", "table", "blocks", "sizes", "map", "compare"]);
/** What the colours of pages say. */
export const MAP_COLORS = /** @type {const} */ (["fullness", "function", "age"]);

/** @type {State} */
const FIRST = {
	trace: 0,
	view: "flame",
	by: "function",
	selection: {kind: "peak"},
	range: null,
	filters: [],
	words: "",
	measure: "bytes",
	isInverted: false,
	isFolded: true,
	isMerged: false,
	focus: "",
	opened: [],
	rows: "function",
	sort: "bytes",
	isRising: false,
	expanded: "",
	search: "",
	item: null,
	other: null,
	block: "",
	map: "fullness",
};

/** @param {number} classes @returns {string} AIFO+AOFI */
export function classNames(classes) {
	return CLASSES.filter((_, i) => classes & (1 << i)).join("+");
}

/** @param {string} text @returns {number} */
export function readClasses(text) {
	return (
		text
			.split("+")
			.reduce(
				(bits, word) =>
					bits |
					(CLASSES.includes(/** @type {any} */ (word)) ? 1 << CLASSES.indexOf(/** @type {any} */ (word)) : 0),
				0,
			) || AIFO
	);
}

/** @param {When} selection */
function writeSelection(selection) {
	if (selection.kind === "peak") return "peak";
	if (selection.kind === "moment") return String(selection.at);
	return `${selection.from}~${selection.to === Infinity ? "" : selection.to}~${classNames(selection.classes)}`;
}

/** @param {string} text @returns {When} */
function readSelection(text) {
	const [from, to, classes] = text.split("~");
	if (classes !== undefined)
		return {kind: "window", from: Number(from) || 0, to: to ? Number(to) : Infinity, classes: readClasses(classes)};
	return Number.isFinite(parseFloat(text)) ? {kind: "moment", at: Number(text)} : {kind: "peak"};
}

/** @template T @param {string} text @param {T} fallback @returns {T} */
function parseJson(text, fallback) {
	try {
		return JSON.parse(text);
	} catch {
		return fallback;
	}
}

const flag = {
	write: (/** @type {any} */ value) => (value ? "1" : "0"),
	read: (/** @type {string} */ text) => text === "1",
};
const word = {write: String, read: String};
const json = (/** @type {(value: any) => boolean} */ isGood) => ({
	write: (/** @type {any} */ value) => JSON.stringify(value),
	read: (/** @type {string} */ text) => {
		const value = parseJson(text, undefined);
		return value !== undefined && isGood(value) ? value : undefined;
	},
});
const oneOf = (/** @type {string[]} */ ...words) => ({
	write: String,
	read: (/** @type {string} */ text) => (words.includes(text) ? text : undefined),
});
export const GROUPING_KEYS = ["function", "stack", "image", "thread", "process", "heap", "size", "life"];
const isFilter = (/** @type {any} */ filter) =>
	[...GROUPING_KEYS, "search"].includes(filter?.by) &&
	typeof filter.key === "string" &&
	typeof filter.hide === "boolean";

/** More than people make is not read from an address, perhaps a stranger's: each filter is a pass over all cells. */
const FILTERS_MAX = 32,
	OPENED_MAX = 10000;

/** How each member of the state is written in the address. */
const CODECS = /** @type {Record<keyof State, {write: (value: any) => string, read: (text: string) => any}>} */ ({
	trace: {write: String, read: (text) => Number(text) >>> 0},
	view: oneOf(...VIEW_NAMES),
	map: oneOf(...MAP_COLORS),
	by: oneOf(...GROUPING_KEYS),
	selection: {write: writeSelection, read: readSelection},
	range: json((value) => value === null || (Number.isFinite(value.from) && value.to > value.from)),
	filters: json((value) => Array.isArray(value) && value.length <= FILTERS_MAX && value.every(isFilter)),
	words: word,
	measure: oneOf("bytes", "blocks", "peak", "temporaries"),
	isInverted: flag,
	isFolded: flag,
	isMerged: flag,
	focus: word,
	opened: json((value) => Array.isArray(value) && value.length <= OPENED_MAX && value.every(Number.isFinite)),
	rows: oneOf(...GROUPING_KEYS, "inclusive"),
	sort: word,
	isRising: flag,
	expanded: word,
	search: word,
	item: json(
		(value) =>
			value === null ||
			(value.kind === "path" && typeof value.path === "string") ||
			([...GROUPING_KEYS, "inclusive"].includes(value.by) && typeof value.key === "string"),
	),
	block: word,
	other: {
		write: (other) => (other ? `${other.trace},${Number(other.isB)},${writeSelection(other.selection)}` : ""),
		read: (text) => {
			const [trace, isB, selection] = text.split(",");
			return selection
				? {trace: Number(trace) >>> 0, isB: isB === "1", selection: readSelection(selection)}
				: null;
		},
	},
});

/** @param {State} state @returns {string} only what differs from the first state */
export function writeAddress(state) {
	const words = new URLSearchParams();
	for (const [name, codec] of Object.entries(CODECS)) {
		const member = /** @type {keyof State} */ (name),
			text = codec.write(state[member]);
		if (text !== codec.write(FIRST[member])) words.set(name, text);
	}
	return "#" + words;
}

/** @param {string} address @returns {State} words that mean nothing are left out */
export function readAddress(address) {
	/** @type {any} */
	const state = {...FIRST};
	for (const [name, text] of new URLSearchParams(address.replace(/^#/, ""))) {
		const value = Object.hasOwn(CODECS, name) ? CODECS[/** @type {keyof State} */ (name)].read(text) : undefined;
		if (value !== undefined) state[name] = value;
	}
	return state;
}

/** @param {number} trace @param {Other | null} other @returns {string} of another trace, to compare with */
export function addressOfTrace(trace, other) {
	return writeAddress({...FIRST, trace, other, view: other ? "compare" : FIRST.view});
}

export class Store {
	/** @param {(before: State) => void} changed is called after each change */
	constructor(changed) {
		this.changed = changed;
		this.state = readAddress(location.hash);
		/** Whether a drag goes on: the picture follows, and the history waits. */
		this.isDragging = false;
		/** Steps that can be undone: how many entries of the history before this one are this page's. Each entry has it, also after a reload. */
		this.depth = Number(history.state?.depth) || 0;
		this.keep("replaceState", location.href);
		window.addEventListener("popstate", (event) => {
			this.depth = event.state ? Number(event.state.depth) || 0 : this.depth + 1;
			// An address that was typed is a step, too.
			if (!event.state) this.keep("replaceState", location.href);
			this.replaceState(readAddress(location.hash));
		});
	}

	/** @param {"pushState" | "replaceState"} method @param {string} address */
	keep(method, address) {
		history[method]({depth: this.depth}, "", address);
	}

	/** @param {State} state */
	replaceState(state) {
		const before = this.state;
		this.state = state;
		this.changed(before);
	}

	/** @param {Partial<State>} members @param {"push" | "replace" | "none"} [step] a step that can be undone, one that is no step, or one of a drag */
	set(members, step = "push") {
		const before = writeAddress(this.state),
			next = {...this.state, ...members},
			address = writeAddress(next);
		if (step !== "none" && (address !== location.hash || before !== address)) {
			if (step === "push") this.depth++;
			this.keep(step === "push" ? "pushState" : "replaceState", address);
		}
		this.replaceState(next);
	}

	undo() {
		if (this.depth) history.back();
	}
}
