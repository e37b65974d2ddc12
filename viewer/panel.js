// SPDX-License-Identifier: MIT
// The side panel: findings while nothing is selected, else the frame or row with its numbers and stacks.
import {factsOf, findGroup, groupName, pathKey, stackId, AIFO, CLASSES} from "./cells.js";
import {MARK_LIBRARY, MARK_WORD, readFrame} from "./decode.js";
import {formatBytes, formatCount, formatShare, formatTime, formatWhole} from "./format.js";
import {byId, fill, make, name} from "./elements.js";
import {cutText, safeText, TITLE_MAX} from "./hostile.js";
import {selectionMark} from "./picture.js";
import {GROUPING_WORDS} from "./legend.js";
import {classNames} from "./store.js";
/** @import {Frame} from "./decode.js" */
/** @import {Child} from "./elements.js" */
/** @import {App} from "./picture.js" */
/** @import {Item} from "./store.js" */

const GLYPHS = /** @type {Record<string, string>} */ ({
	growth: "↗",
	peak: "▲",
	short_lived: "↯",
	reallocs: "⇢",
	freed_by_others: "⇄",
	outstanding: "•",
	resident: "◧",
	losses: "!",
});
/** Frames of a stack that are shown at once. */
const FRAMES_MAX = 9;
const PROCESSES_MAX = 12;
/** Kinds of resident memory, in order: member, words, class of the swatch. */
const RESIDENT = [
	["live_bytes", "live blocks", "part-live"],
	["rounding_bytes", "rounding", "part-rounding"],
	["free_bytes", "free inside heaps", "part-free"],
];
const RESIDENT_OTHERS = /** @type {Record<string, string>} */ ({
	anonymous: "anonymous, not heap",
	files: "files",
	code: "code",
	stacks: "stacks",
	break: "break",
	shared: "shared",
	recorder: "the recorder",
	other: "other",
	unread: "not read",
});

/** @param {string} title @param {string} [right] */
function section(title, right = "") {
	return make("h2", {}, make("span", {}, title), make("span", {class: "right"}, right));
}

/** The head of what the button for it leads to. */
function freedBy() {
	return make("h2", {id: "freed"}, make("span", {}, "Freed by"));
}

/** Longer paths lose their first folders. Characters. */
const PATH_MAX = 40;

/** @param {string} path @returns {string} its end, from a folder on */
function endOfPath(path) {
	const cut = path.length > PATH_MAX ? path.indexOf("/", path.length - PATH_MAX) : -1;
	return cut > 0 ? "…" + path.slice(cut) : path;
}

export class Panel {
	/** @param {App} app */
	constructor(app) {
		this.app = app;
		/** @type {{mask: Uint8Array, facts: ReturnType<typeof factsOf>, cells: Uint32Array} | null} */
		this.known = null;
		this.box = byId("panel");
		this.isLong = false;
		this.shownItem = "";
		/** @type {any} */
		this.frees = null;
	}

	render() {
		const {item} = this.app.store.state,
			key = JSON.stringify(item);
		if (!item && key === this.shownItem) return;
		if (key !== this.shownItem) {
			this.isLong = false;
			this.frees = null;
			this.shownItem = key;
			this.box.scrollTop = 0;
		}
		document.body.classList.toggle("has-item", item !== null);
		if (item && this.picture.itemMask) fill(this.box, ...this.drawItem(item, this.picture.itemMask));
		else fill(this.box, ...this.drawFindings(), ...this.drawResident(), ...this.drawProcesses());
	}

	/** @returns {Child[]} */
	drawFindings() {
		const findings = this.app.trace.findings ?? [];
		return [
			section("Findings"),
			...(findings.length ? [] : [make("p", {class: "faint"}, "Nothing stands out.")]),
			...findings.slice(0, 5).map((/** @type {any} */ finding) => this.drawFinding(finding)),
		];
	}

	/** @param {any} finding */
	drawFinding(finding) {
		const {select} = finding,
			item = this.itemOf(finding);
		const bits =
			(select?.classes ?? ["AIFO"]).reduce(
				(/** @type {number} */ sum, /** @type {any} */ word) => sum | (1 << CLASSES.indexOf(word)),
				0,
			) || AIFO;
		const selection = !select
			? null
			: select.at_ns !== undefined
				? {kind: /** @type {const} */ ("moment"), at: select.at_ns}
				: {kind: /** @type {const} */ ("window"), from: select.from_ns, to: select.to_ns, classes: bits};
		return make(
			"button",
			{
				class: "finding",
				title: cutText(safeText(finding.command), 400),
				onclick: () => this.app.store.set({...(selection ? {selection} : {}), item}),
			},
			make(
				"span",
				{
					class: `glyph ${finding.kind === "growth" || finding.kind === "losses" ? "more" : ""}`,
					"aria-hidden": "true",
				},
				GLYPHS[finding.kind] ?? "•",
			),
			make(
				"span",
				{},
				make("span", {class: "finding-text"}, cutText(safeText(finding.title ?? finding.text), 300)),
				finding.evidence && make("span", {class: "evidence"}, cutText(safeText(finding.evidence), 300)),
			),
		);
	}

	/** @param {any} finding @returns {Item | null} its stack; the function, if the stack is lumped or not told */
	itemOf(finding) {
		const keyOf = (/** @type {any} */ pair) => `${pair[0]}!${pair[1]}`,
			stack = finding.stack && stackId(finding.stack.map(keyOf));
		if (stack && findGroup(this.app.whole, "stack", stack) >= 0) return {kind: "group", by: "stack", key: stack};
		return finding.function ? {kind: "group", by: "inclusive", key: keyOf(finding.function)} : null;
	}

	/** @returns {Child[]} */
	drawResident() {
		const {resident} = this.app.trace;
		if (!resident) return [];
		const parts = [
			...RESIDENT.map(([member, words, swatch]) => ({value: resident[member], words, swatch})),
			...Object.entries(RESIDENT_OTHERS).map(([kind, words]) => ({
				value: resident.others?.[kind],
				words,
				swatch: "part-other",
			})),
		].filter((part) => part.value > 0);
		const total = resident.read_bytes ?? resident.bytes;
		const bar = make(
			"div",
			{class: "parts", "aria-hidden": "true"},
			...parts.map((part) => {
				const element = make("div", {class: part.swatch});
				element.style.width = `${(part.value / total) * 100}%`;
				return element;
			}),
		);
		return [
			section("Resident at its largest", formatBytes(resident.bytes)),
			parts.length ? bar : null,
			...parts.map((part) =>
				make(
					"div",
					{class: "part"},
					make("span", {class: `swatch ${part.swatch}`}),
					make("span", {class: "name"}, part.words),
					make("span", {class: "value"}, formatBytes(part.value)),
				),
			),
		];
	}

	/** @returns {Child[]} */
	drawProcesses() {
		const {processes} = this.app.trace;
		if (processes.length < 2) return [];
		return [
			section("Processes", formatWhole(processes.length)),
			...processes
				.slice(0, PROCESSES_MAX)
				.map((/** @type {any} */ process, /** @type {number} */ i) =>
					make(
						"button",
						{
							class: "part link-row",
							onclick: () =>
								this.app.store.set({filters: [{by: "process", key: String(i), hide: false}]}),
						},
						name(`${safeText(process.name)} ${process.pid ?? ""}`),
						make("span", {class: "value"}, `from ${formatTime(process.begin_ns)}`),
					),
				),
			processes.length > PROCESSES_MAX
				? make("p", {class: "faint"}, `${processes.length - PROCESSES_MAX} more: table by process`)
				: null,
		];
	}

	/** What is selected in the flame may be in its finer cells alone. */
	get picture() {
		return this.app.store.state.item?.kind === "path" ? this.app.detail : this.app.picture;
	}

	/** @param {Uint8Array} mask @returns {{facts: ReturnType<typeof factsOf>, cells: Uint32Array}} what does not depend on the selection is kept */
	factsOfItem(mask) {
		if (this.known?.mask !== mask)
			this.known = {
				mask,
				facts: factsOf(this.picture.model, mask),
				cells: new Uint32Array(mask.length).map((_, i) => i).filter((i) => mask[i] === 1),
			};
		return this.known;
	}

	/** @param {Item} item @param {Uint8Array} mask @returns {Child[]} */
	drawItem(item, mask) {
		const {app} = this,
			{model, selected} = this.picture,
			{cells} = model;
		let bytes = 0,
			blocks = 0;
		const {facts, cells: own} = this.factsOfItem(mask);
		for (const i of own) {
			if (!selected.hits[i]) continue;
			bytes += cells.bytes[i];
			blocks += cells.blocks[i];
		}
		const node = this.mainNode(own),
			about = this.describeItem(item);
		const mark = about.placed ? /** @type {any} */ (app).flame.markOf(about.placed) : selectionMark(app.picture);
		const numbers = [
			[mark + formatBytes(bytes), "selected"],
			[formatShare(bytes / app.picture.selected.bytes), "of it"],
			[mark + formatWhole(blocks), "blocks"],
			[`≥\u2009${formatBytes(facts.most)}`, `at most, ${formatTime(cells.bounds[facts.mostAt])}`],
			[app.picture.made + formatBytes(facts.made), cells.whole ? "made in all" : "made in range"],
			[formatBytes(facts.neverFreed), "never freed"],
		];
		return [
			section(about.kind, ""),
			make(
				"button",
				{class: "close", onclick: () => app.store.set({item: null}), title: "Close"},
				"close ",
				make("kbd", {}, "esc"),
			),
			make("h3", {class: "item-name", title: cutText(about.full, 400)}, name(cutText(about.full, 600))),
			about.place && make("p", {class: "item-place"}, name(cutText(about.place, 300))),
			make(
				"dl",
				{class: "numbers"},
				...numbers.map(([value, words]) => make("div", {}, make("dt", {}, words), make("dd", {}, value))),
			),
			this.drawButtons(item, about.frame),
			...(node >= 0 ? this.drawStack(node, item) : []),
			...(node >= 0 ? this.drawFrees(node) : []),
		];
	}

	/**
	 * @param {Uint32Array} own cells
	 * @returns {number} the node that asked for most of these bytes: in the selection, else in the run
	 */
	mainNode(own) {
		const {model, selected} = this.picture,
			{node, asker, bytes, nodeCount} = model.cells;
		const sums = new Float64Array(nodeCount),
			inside = new Float64Array(nodeCount);
		for (const i of own) {
			sums[asker[node[i]]] += bytes[i];
			if (selected.hits[i]) inside[asker[node[i]]] += bytes[i];
		}
		const largest = (/** @type {Float64Array} */ values) =>
			values.reduce((best, value, at) => (value > (best < 0 ? 0 : values[best]) ? at : best), -1);
		const found = largest(inside);
		return found >= 0 ? found : largest(sums);
	}

	/**
	 * @param {Item} item
	 * @returns {{kind: string, full: string, place: string, frame: Frame | null, placed: any}} what the head of the
	 * panel says
	 */
	describeItem(item) {
		const {model} = this.picture,
			{cells} = model;
		const of = (
			/** @type {string} */ kind,
			/** @type {Frame | null} */ frame,
			/** @type {string} */ name,
			/** @type {string} */ place,
			/** @type {any} */ placed = null,
		) => ({
			kind,
			full: frame ? frame.full : name,
			place: frame ? [frame.image, endOfPath(frame.file)].filter(Boolean).join(" · ") : place,
			frame,
			placed,
		});
		if (item.kind === "path") {
			const placed = /** @type {any} */ (this.app).flame.layout.frames.find(
				(/** @type {any} */ frame) =>
					frame.path === item.path && ["frame", "chain", "group"].includes(frame.kind),
			);
			if (!placed) return of("Frame", null, "not to be seen in this selection", "");
			return of(
				placed.kind === "group" ? GROUPING_WORDS[this.app.store.state.by] : "Frame",
				placed.kind === "group" ? null : cells.frames[placed.frame],
				placed.name,
				"",
				placed,
			);
		}
		const by = item.by === "inclusive" ? "function" : item.by,
			words = item.by === "inclusive" ? "function, with callees" : GROUPING_WORDS[by],
			kind = words[0].toUpperCase() + words.slice(1),
			key = findGroup(model, by, item.key);
		if (key < 0) return of(kind, null, "nothing of it in this range", "");
		const group = groupName(model, by, key);
		return of(
			kind,
			by === "function" ? cells.frames[key] : by === "stack" ? cells.frames[cells.frame[key]] : null,
			group.name,
			group.detail,
		);
	}

	/** @param {Item} item @param {Frame | null} frame */
	drawButtons(item, frame) {
		const {store} = this.app,
			{filters} = store.state;
		const filter =
			frame && !(frame.marks & MARK_WORD)
				? {by: /** @type {const} */ ("function"), key: frame.key}
				: item.kind === "group" && item.by !== "stack" && item.by !== "inclusive"
					? {by: item.by, key: item.key}
					: null;
		const add = (/** @type {boolean} */ hide) =>
			filter && store.set({filters: [...filters, {...filter, hide}], item: null, focus: ""});
		return make(
			"div",
			{class: "buttons"},
			filter && make("button", {class: "button", onclick: () => add(false)}, "Only this"),
			filter && make("button", {class: "button", onclick: () => add(true)}, "Hide"),
			frame &&
				frame.image &&
				make(
					"button",
					{
						class: "button",
						onclick: () =>
							store.set({filters: [...filters, {by: "image", key: frame.image, hide: true}], item: null}),
						title: `Hide all stacks through ${cutText(frame.image, 80)}`,
					},
					"Hide image",
				),
			make(
				"button",
				{class: "button", onclick: () => document.getElementById("freed")?.scrollIntoView()},
				"Who frees it",
			),
			item.kind === "path" &&
				make("button", {class: "button", onclick: () => store.set({focus: item.path, item: null})}, "Focus"),
		);
	}

	/** @param {number} node @param {Item} item @returns {Child[]} frames, innermost first */
	drawStack(node, item) {
		const {cells} = this.picture.model,
			frames = [];
		for (let at = node; at >= 0; at = cells.parent[at])
			frames.push({
				frame: cells.frames[cells.frame[at]],
				line: cells.line[at],
				isInlined: cells.inlined[at] === 1,
			});
		const isOne = item.kind === "group" && item.by === "stack";
		return [
			section(
				isOne ? "Made by" : "Made by, its largest stack",
				`${frames.length} ${frames.length === 1 ? "frame" : "frames"}`,
			),
			this.drawFrames(frames),
		];
	}

	/** @param {{frame: Frame, line: number, isInlined: boolean}[]} frames */
	drawFrames(frames) {
		const most = this.isLong ? frames.length : FRAMES_MAX;
		return make(
			"ol",
			{class: "stack"},
			...frames
				.slice(0, most)
				.map(({frame, line, isInlined}) =>
					make(
						"li",
						{class: frame.marks & MARK_LIBRARY ? "library" : ""},
						make(
							"div",
							{class: "stack-name", title: cutText(frame.full, 400)},
							name(cutText(frame.short, 300)),
							isInlined && make("span", {class: "faint"}, " inlined"),
						),
						make(
							"div",
							{class: "stack-place", title: cutText(frame.file || frame.image, TITLE_MAX)},
							name(
								cutText(
									frame.file ? endOfPath(frame.file) + (line ? `:${line}` : "") : frame.image,
									200,
								),
							),
						),
					),
				),
			frames.length > most &&
				make(
					"li",
					{},
					make(
						"button",
						{
							class: "link",
							onclick: () => {
								this.isLong = true;
								this.render();
							},
						},
						`${frames.length - most} more`,
					),
				),
		);
	}

	/** @param {number} node @returns {Child[]} the stacks that freed blocks of a node */
	drawFrees(node) {
		if (!this.app.source.isServer)
			return [freedBy(), make("p", {class: "faint"}, "This file does not say who freed; xheap view does.")];
		const {choice, model} = this.picture,
			{bounds} = model.cells;
		const query = {
			node: pathKey(model, node),
			...(this.app.filter && {filter: this.app.filter}),
			...(choice.kind === "moment"
				? {at: String(bounds[choice.at])}
				: {
						from: String(bounds[choice.from] + 1),
						to: String(bounds[choice.to]),
						classes: classNames(choice.classes),
					}),
		};
		const key = JSON.stringify(query);
		if (this.frees?.key !== key && !this.app.store.isDragging) {
			this.frees = {key, answer: null, error: ""};
			const {frees} = this;
			this.app.source
				.frees(this.app.store.state.trace, query)
				.then(
					(answer) => (frees.answer = answer),
					(error) => (frees.error = error.message),
				)
				.then(() => frees === this.frees && this.render());
		}
		if (!this.frees?.answer)
			return [
				freedBy(),
				make("p", {class: "faint"}, this.frees?.error ? safeText(this.frees.error) : "being found …"),
			];
		const {stacks} = this.frees.answer,
			total = stacks.reduce((/** @type {number} */ sum, /** @type {any} */ stack) => sum + stack.bytes, 0);
		if (!stacks.length)
			return [
				freedBy(),
				make(
					"p",
					{class: "faint"},
					"Nothing has freed these blocks. Choose the whole run (w) for all that this stack made.",
				),
			];
		return [
			freedBy(),
			...stacks
				.slice(0, 4)
				.map((/** @type {any} */ stack) =>
					make(
						"div",
						{},
						make(
							"p",
							{class: "freed"},
							make("b", {}, formatShare(stack.bytes / total)),
							` ${formatBytes(stack.bytes)} in ${formatCount(stack.blocks)} blocks`,
						),
						this.drawFrames(
							stack.frames.map((/** @type {any} */ row) => ({
								frame: readFrame([...row.slice(0, 4), row[5]]),
								line: row[4],
								isInlined: false,
							})),
						),
					),
				),
		];
	}
}
