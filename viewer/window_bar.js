// SPDX-License-Identifier: MIT
// Which blocks: the moment's sum, or the window with a switch for each class; presets.
import {AIFO, CLASSES} from "./cells.js";
import {formatBlocks, formatBytes, formatTime} from "./format.js";
import {byId, fill, make} from "./elements.js";
import {NEVER_FREED, WHOLE_RUN} from "./store.js";

const WORDS = ["made and freed here", "made here, still there", "older, freed here", "older, still there"];
/** Bars of the pictures, with where they end: freed, or going on. The window is from 10 to 22. */
const BARS = [
	"M13 6.5h6v3h-6zM18 4h2v8h-2z",
	"M13 6.5h15v3h-15zM26 3.5l5 4.5l-5 4.5z",
	"M3 6.5h14v3h-14zM16 4h2v8h-2z",
	"M3 6.5h25v3h-25zM26 3.5l5 4.5l-5 4.5z",
];

/** @param {string} tag @param {Record<string, string>} attributes @param {Element[]} children */
function shape(tag, attributes, ...children) {
	const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
	for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
	element.append(...children);
	return element;
}

/** @param {number} index of the class @returns {Element} a window, and a bar that begins and ends in it or outside */
function drawClass(index) {
	return shape(
		"svg",
		{viewBox: "0 0 32 16", width: "32", height: "16", "aria-hidden": "true"},
		shape("path", {d: "M10 0h12v16h-12z", class: "class-window"}),
		shape("path", {d: BARS[index], class: "class-bar"}),
	);
}

/** @param {App} app @returns {{key: string, words: string, title: string, isOn: boolean, members: Partial<State>, isOff?: boolean}[]} */
function presetsOf(app) {
	const {picture, trace} = app,
		{choice} = picture,
		{bounds} = picture.model.cells,
		growth = trace.live ? {from_ns: bounds[(picture.model.last * 3) >> 2], to_ns: Infinity} : trace.answer?.growth,
		{selection} = app.store.state;
	const isWindow = choice.kind === "window";
	return [
		{
			key: "p",
			words: trace.live ? "Now" : "Peak",
			title: trace.live ? "What lives now" : "What lived at the peak",
			isOn: picture.isPeak || selection.kind === "peak",
			members: {selection: {kind: "peak"}},
		},
		{
			key: "w",
			words: "Whole run",
			title: "All blocks of the run",
			isOn: picture.isWhole && isWindow && choice.classes !== AIFO,
			members: {selection: WHOLE_RUN, range: null},
		},
		{
			key: "g",
			words: "Grows",
			title: growth ? "Functions by what they grew: made meanwhile and still there, less what they freed" : "Nothing grows steadily",
			// Of a recording, the beginning stays where it was.
			isOn:
				selection.kind === "window" &&
				selection.to === growth?.to_ns &&
				(trace.live ? selection.from > 0 : selection.from === growth.from_ns),
			isOff: !growth,
			// What is replaced all the time is made here and still there, too: the net change tells both apart.
			members: growth
				? {
						selection: {kind: "window", from: growth.from_ns, to: growth.to_ns, classes: AIFO},
						view: "table",
						rows: "function",
						sort: "change",
						isRising: false,
					}
				: {},
		},
		neverFreed(app),
	];
}

/** @param {App} app @param {string} key */
export function choosePreset(app, key) {
	const preset = presetsOf(app).find((other) => other.key === key);
	if (preset && !preset.isOff) app.store.set({...preset.members, item: null});
}

/** @param {App} app @returns {ReturnType<typeof presetsOf>[0]} of a window its own blocks, else those of the run */
function neverFreed({picture, store}) {
	const {choice, isWhole} = picture,
		{selection, filters} = store.state,
		others = filters.filter((filter) => filter.by !== "life"),
		isOn = filters.some((filter) => filter.by === "life" && filter.key === NEVER_FREED && !filter.hide),
		isPart = selection.kind === "window" && !isWhole;
	const only = {by: /** @type {const} */ ("life"), key: NEVER_FREED, hide: false};
	return {
		key: "e",
		words: "Never freed",
		title: isPart ? "Blocks that were made here and that nothing frees" : "Blocks that nothing frees",
		isOn: isPart ? isOn : isWhole && choice.kind === "window" && choice.classes === AIFO,
		members: isPart
			? {selection: {...selection, classes: AIFO}, filters: isOn ? others : [...others, only]}
			: {selection: {...WHOLE_RUN, classes: AIFO}, range: null},
	};
}

export class WindowBar {
	/** @param {App} app */
	constructor(app) {
		this.app = app;
		this.words = byId("selection-words");
		this.presets = byId("presets");
		/** @type {HTMLButtonElement[]} */
		this.switches = CLASSES.map((_, i) =>
			make(
				"button.class-switch",
				{onclick: (/** @type {MouseEvent} */ event) => this.toggle(1 << i, event.altKey)},
				drawClass(i),
				make("span.class-words", make("span", WORDS[i]), make("span", make("b", ""), make("span", ""))),
			),
		);
		byId("classes").replaceChildren(...this.switches);
		this.presetButtons = presetsOf(app).map((preset) =>
			make(
				"button.preset",
				{onclick: () => choosePreset(app, preset.key)},
				preset.words,
				" ",
				make("kbd", preset.key),
			),
		);
		this.presets.replaceChildren(...this.presetButtons);
	}

	/** @param {number} bit @param {boolean} isOnly */
	toggle(bit, isOnly) {
		const {choice, model, isWhole} = this.app.picture,
			{selection} = this.app.store.state,
			{bounds} = model.cells;
		if (choice.kind !== "window") return;
		const classes = isOnly ? bit : choice.classes ^ bit || bit;
		const times = isWhole
			? WHOLE_RUN
			: selection.kind === "window"
				? selection
				: {from: bounds[choice.from], to: bounds[choice.to]};
		this.app.store.set({selection: {kind: "window", from: times.from, to: times.to, classes}});
	}

	render() {
		const {picture} = this.app,
			{choice, model, selected} = picture,
			{bounds} = model.cells,
			isWindow = choice.kind === "window";
		byId("classes").hidden = !isWindow;
		if (isWindow) {
			fill(
				this.words,
				make("b", picture.isWhole ? "Whole run" : formatTime(bounds[choice.from])),
				!picture.isWhole && " to ",
				!picture.isWhole && make("b", formatTime(bounds[choice.to])),
				selected.earlierBytes > 0 &&
					make(
						"span.hint",
						{title: "Older blocks from before the trace, which no class has"},
						`and ${formatBytes(selected.earlierBytes)} from before the trace`,
					),
			);
			this.switches.forEach((button, i) => {
				button.setAttribute("aria-pressed", String(Boolean(choice.classes & (1 << i))));
				const when = i & 1 ? ` at ${formatTime(bounds[choice.to])}` : "";
				button.title = `${WORDS[i]}${when} (${CLASSES[i]}). Alt+click: only these`;
				const [bytes, time] = button.lastElementChild?.lastElementChild?.children ?? [];
				bytes.textContent = picture.made + formatBytes(selected.classBytes[i]);
				time.textContent = when;
			});
		} else {
			fill(
				this.words,
				make("b", `${picture.isPeak ? "At the peak, " : "At "}${formatTime(bounds[choice.at])}`),
				" ",
				make("b.apart", picture.live + formatBytes(selected.bytes)),
				` live in ${picture.live}${formatBlocks(selected.blocks)}`,
				picture.isUncertain &&
					make("span.more", {title: "A free may be lost, so live bytes may be too large"}, ", uncertain"),
				make("span.hint", "Drag on the timeline for a window; click for a moment."),
			);
		}
		presetsOf(this.app).forEach((preset, i) => {
			this.presetButtons[i].setAttribute("aria-pressed", String(preset.isOn));
			this.presetButtons[i].title = preset.title;
			/** @type {Node} */ (this.presetButtons[i].firstChild).nodeValue = preset.words;
			this.presetButtons[i].disabled = Boolean(preset.isOff);
		});
	}
}
