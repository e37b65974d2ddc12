// SPDX-License-Identifier: MIT
// Keys, in one list: what they do, and the sheet that explains them.
import {byId, fill, make} from "./elements.js";
import {markOther} from "./compare_view.js";
import {VIEW_NAMES} from "./store.js";
import {ZOOM} from "./timeline.js";
import {choosePreset} from "./window_bar.js";

/** @param {App} app */
export function toggleInverted({store}) {
	store.set({isInverted: !store.state.isInverted, focus: "", opened: [], item: null});
}

/** One step out of those that KEY_ACTIONS says. @param {App} app */
function stepOut(app) {
	const {state} = app.store;
	const steps = /** @type {[boolean, Partial<State>][]} */ ([
		[state.block !== "", {block: ""}],
		[state.item !== null, {item: null}],
		[state.focus !== "", {focus: ""}],
		[state.search !== "", {search: ""}],
		[state.other !== null, {other: null}],
		[state.filters.length > 0 || state.words !== "", {filters: [], words: ""}],
		[state.range !== null, {range: null}],
		[state.selection.kind !== "peak", {selection: {kind: "peak"}}],
	]);
	const step = steps.find(([isOn]) => isOn);
	if (step) app.store.set(step[1]);
}

/** @type {Action[]} */
const KEY_ACTIONS = [
	{keys: ["m"], words: "keep the selection as A, to compare it with another one", run: markOther},
	{
		keys: [..."123456"],
		words: "flame, table, blocks, sizes by lifetimes, map, compare",
		run: (app, key) => {
			const view = VIEW_NAMES[Number(key) - 1];
			app.store.set({view});
			// Behind the frame that shows it.
			requestAnimationFrame(() => {
				const box = byId(view),
					target = box.matches("[tabindex]") ? box : box.querySelector('[tabindex="0"]');
				/** @type {HTMLElement | null} */ (target)?.focus({preventScroll: true});
			});
		},
	},
	{
		keys: ["/"],
		words: "search a function; Enter keeps only what it finds; a filter of xheap heap, such as -size 64 128",
		run: () => byId("search").focus(),
	},
	{keys: ["p", "w", "g", "e"], words: "peak, whole run, what grows, never freed", run: choosePreset},
	{
		keys: ["[", "]"],
		words: "move the selection by one bound",
		run: (app, key) => app.timeline.shift(key === "[" ? -1 : 1, false),
	},
	{keys: ["{", "}"], words: "move its end", run: (app, key) => app.timeline.shift(key === "{" ? -1 : 1, true)},
	{
		keys: ["+", "=", "-"],
		words: "zoom the timeline",
		run: (app, key) => app.timeline.zoom(key === "-" ? 1 / ZOOM : ZOOM),
	},
	{keys: ["i"], words: "inverted flame", run: toggleInverted},
	{keys: ["a"], words: "all frames", run: (app) => app.store.set({isFolded: !app.store.state.isFolded})},
	{keys: ["u", "ctrl+z"], words: "undo", run: (app) => app.store.undo()},
	{keys: ["Escape"], words: "one step out: panel, focus, search, comparison, filters, zoom, peak", run: stepOut},
	{keys: ["d"], words: "light or dark", run: (app) => app.toggleTheme()},
	{keys: ["?"], words: "this sheet", run: (app) => app.open("keys")},
];
/** Keys of the views, for the sheet. */
const OTHER_KEYS = [
	[
		"arrows",
		"in the flame: other frames; in the table: other rows; in sizes: an area; in the map: other pages; on the timeline: one bound, with Shift the end",
	],
	["Enter", "in the flame: focus, or open a chain; in the table: callers and callees; in sizes: filter by the area"],
	["Space", "select the frame or row"],
	["Backspace", "in the flame: out of the focus"],
];
const MOUSE = [
	[
		"drag",
		"on the timeline: a part of the time; its handles change it, the label above moves it; on sizes: a filter",
	],
	["click", "on the timeline: a moment; on a frame or row: its numbers, and who freed it"],
	["double click", "on the timeline: the whole run; on a frame: focus; on a row: callers and callees"],
	["Shift+drag", "on the timeline: a second part, to compare with the one before"],
	["wheel", "on the timeline: zoom"],
	["Alt+click", "on a class of blocks: only this class"],
];
const MARKS = [
	["≥", "at least so much: calls are lost, or smaller stacks are not told apart"],
	["~", "an estimate: the trace is a sample"],
	["≡", "a run of frames, one below the other, with nearly all of the bytes; click opens it"],
	["▼", "the peak; the thin line above the areas is the most inside each interval"],
	["dashed line", "resident memory"],
	["hatching", "lost calls"],
	["grey", "others, or a frame of several colours"],
];

/** @param {any} app */
export function listenToKeys(app) {
	document.addEventListener("keydown", (event) => {
		const target = /** @type {HTMLElement} */ (event.target),
			isTyping = target.matches("input, select, textarea");
		if (isTyping && event.key === "Escape") target.blur();
		if (
			isTyping ||
			event.defaultPrevented ||
			event.altKey ||
			event.metaKey ||
			document.querySelector("dialog[open]")
		)
			return;
		const key = event.ctrlKey ? `ctrl+${event.key}` : event.key;
		const action = KEY_ACTIONS.find((other) => other.keys.includes(key));
		if (!action) return;
		event.preventDefault();
		action.run(app, key);
	});
}

export function fillKeys() {
	const rowsOf = (/** @type {string[][]} */ rows) =>
		rows.map(([keys, words]) => make("div.key-row", make("kbd", keys), make("span", words)));
	fill(
		byId("keys-list"),
		...rowsOf([...KEY_ACTIONS.map((action) => [action.keys.join("  "), action.words]), ...OTHER_KEYS]),
		make("h2", "Mouse"),
		...rowsOf(MOUSE),
		make("h2", "Marks"),
		...rowsOf(MARKS),
	);
}
