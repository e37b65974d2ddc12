// SPDX-License-Identifier: MIT
// The side panel: findings while nothing is selected, else the frame or row with its numbers and stacks.
import {
	factsOf,
	findGroup,
	frameHashes,
	groupCells,
	groupName,
	pathKey,
	pathsWith,
	processPeaks,
	stackId,
	sumGroups,
} from "./cells.js";
import {optionsOf, splitWords} from "./command.js";
import {keyOf, MARK_LIBRARY, MARK_WORD, readFrame} from "./decode.js";
import {formatBlocks, formatBytes, formatShare, formatTime, formatWhole, MISSING} from "./format.js";
import {byId, capital, fill, make, name} from "./elements.js";
import {cutText, safeText, TITLE_MAX} from "./hostile.js";
import {askedSelection, selectionMark} from "./picture.js";
import {tellEnd} from "./blocks.js";
import {readClasses, WHOLE_RUN} from "./store.js";
import {sumInclusive} from "./table.js";
import {neighboursOf} from "./tree.js";
import {GROUPING_WORDS} from "./legend.js";

const GLYPHS = /** @type {Record<string, string>} */ ({
	growth: "↗",
	peak: "▲",
	arenas: "▦",
	short_lived: "↯",
	reallocs: "⇢",
	freed_by_others: "⇄",
	outstanding: "•",
	resident: "◧",
	pinned: "◧",
	losses: "!",
});
/** Findings whose share is that of a stack: the function may have more. */
const ONE_STACK = ["peak", "outstanding"];
/** Frames of a stack that are shown at once. */
const FRAMES_MAX = 9;
const PROCESSES_MAX = 12;
/** Functions that a search finds, and direct callers. */
const FOUND_MAX = 8,
	CALLERS_MAX = 5;
/** Stacks that freed. */
const FREED_MAX = 4;
/** Stacks that keep pages. */
const KEEPERS_MAX = 5;
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
	return make("h2", make("span", title), make("span.right", right));
}

/** @param {string} text a report's @returns {string} with the sign of microseconds that the page has */
function tellTime(text) {
	return safeText(text).replace(/(\d) us\b/g, "$1 µs");
}

/** @param {string[][]} numbers with their words */
function drawNumbers(numbers) {
	return make("dl.numbers", ...numbers.map(([value, words]) => make("div", make("dt", words), make("dd", value))));
}

/** The head of what the button for it leads to. @param {string} [base] of what the shares are */
function freedBy(base) {
	const head = section("Freed by", base);
	head.id = "freed";
	return head;
}

/** @param {{error?: string}} found without an answer */
function tellNone({error}) {
	return make("p.faint", error ? safeText(error) : "being found …");
}

/** @param {any[][]} rows of an answer */
function readFrames(rows) {
	return rows.map((row) => ({
		frame: readFrame([...row.slice(0, 4), row[5]]),
		line: Number(row[4]),
		isInlined: false,
	}));
}

/** @param {any[][]} frames @param {any[][]} others @returns {number} how many both begin with; the last one of a stack is shown */
function sameFrames(frames, others) {
	const different = frames.findIndex((frame, i) => String(frame) !== String(others[i]));
	return different < 0 ? frames.length - 1 : different;
}

/** @param {Picture} picture @returns {number} bytes of all blocks whose stacks a search hits, selected or not */
function sumHits({model: {cells}, hitPaths}) {
	let sum = 0;
	for (let i = 0; i < cells.count; i++) if (hitPaths?.[cells.node[i]]) sum += cells.bytes[i];
	return sum;
}

/** @param {Frame | null} frame @param {string} name @param {string} place if it is no function */
function tellPlace(frame, name, place) {
	return frame
		? {full: frame.full, place: [frame.image, endOfPath(frame.file)].filter(Boolean).join(" · ")}
		: {full: name, place};
}

/** @param {any} finding @returns {boolean} whether the map shows it */
function isOfPages({kind, function: keeper}) {
	return kind === "pinned" && Boolean(keeper);
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
		/** The frame whose source lines are shown, and how many frames are drawn so far. */
		this.source = this.frames = 0;
		/** @type {(ReturnType<typeof neighboursOf> & {hits: Uint8Array}) | null} */
		this.callers = null;
	}

	render() {
		const {trace, source, lacking} = this.app,
			{item, search, filters, words, view} = this.app.store.state,
			block = view === "blocks" ? this.app.store.state.block : "",
			{answer} = view === "map" ? this.app.map : {answer: null},
			key = JSON.stringify([item ?? [search, filters, words, answer?.stacks], block, trace.live && lacking, source.held]);
		const isDragging = this.app.store.isDragging;
		if (!item && !block && (!answer || isDragging) && !search.trim() && key === this.shownItem) return;
		if (key !== this.shownItem) {
			this.isLong = false;
			this.callers = null;
			this.source = 0;
			this.shownItem = key;
			this.box.scrollTop = 0;
		}
		this.frames = 0;
		document.body.classList.toggle("has-item", item !== null || block !== "");
		if (block) fill(this.box, ...this.drawBlock(block));
		else if (item && this.picture.itemMask) fill(this.box, ...this.drawItem(item, this.picture.itemMask));
		else
			fill(
				this.box,
				...this.drawFound(),
				...(answer ? this.drawKeepers(answer) : []),
				...this.drawFindings(),
				...this.drawResident(),
				...this.drawProcesses(),
			);
	}

	/** @returns {{query: Record<string, string>, lacks: string[]}} what asks the server for the blocks of the selected item, or for all that pass the filters */
	asked() {
		const {item} = this.app.store.state,
			{itemMask} = this.picture;
		if (item && itemMask) {
			const {cells} = this.factsOfItem(itemMask),
				node = this.mainNode(cells);
			if (node >= 0) return this.freedOf(item, node, cells[0]);
		}
		return this.filtered();
	}

	/** @returns {{query: Record<string, string>, lacks: string[]}} what asks the server for all blocks that pass the filters */
	filtered() {
		const {filters, words} = this.app.store.state,
			typed = splitWords(words),
			{words: options, lacks} = optionsOf(this.app, filters, typed);
		return {query: {filter: [...typed, ...options].join("\n")}, lacks};
	}

	/** @param {Partial<State>} members without what is shown */
	closer(members) {
		return make(
			"button.close",
			{onclick: () => this.app.store.set(members), title: "Close"},
			"close ",
			make("kbd", "esc"),
		);
	}

	/** @param {string} id @returns {Child[]} all that is known of a block */
	drawBlock(id) {
		const {app} = this;
		const found = app.find("block", {id}),
			{answer} = found;
		const head = [section("Block"), this.closer({block: ""})];
		if (!answer) return [...head, tellNone(found)];
		const {size, birth_ns: birth, end_ns: end} = answer,
			time = formatTime(end),
			told = tellEnd(answer);
		const numbers = [
			[formatBytes(size), size < 1024 ? "size" : `size, ${formatWhole(size)} bytes`],
			birth === undefined ? ["before", "made, before the trace"] : [formatTime(birth), "made"],
			[time, told === time ? "ended" : told],
			[birth === undefined ? MISSING : formatTime(end - birth), "lived"],
		];
		const list = (/** @type {string} */ title, /** @type {number} */ count, /** @type {any[]} */ rows) =>
			count
				? [
						section(title, rows.length < count ? `${rows.length} of ${formatWhole(count)}` : ""),
						...rows.map((row) =>
							this.linkRow(
								formatBytes(row.size),
								`${row.birth_ns === undefined ? "before" : formatTime(row.birth_ns)} to ${tellEnd(row)}`,
								{block: String(row.id)},
							),
						),
					]
				: [];
		return [
			...head,
			make("h3.item-name", answer.address),
			make("p.item-place", name(groupName(this.picture.model, "thread", answer.thread).name)),
			drawNumbers(numbers),
			section("Made by"),
			this.drawFrames(readFrames(answer.made)),
			...(answer.freed ? [section("Freed by"), this.drawFrames(readFrames(answer.freed))] : []),
			...list("Grown by realloc, out of", answer.earlier_count, answer.earlier),
			...list("Grown by realloc, to", answer.later_count, answer.later),
			...list("At this address before", answer.before_count - 1, answer.before),
			...list("At this address after", answer.after_count, answer.after),
		];
	}

	/** @returns {Child[]} the functions that a search finds, with what stacks through them have of the selection */
	drawFound() {
		const {model, choice, selected, mask, hitFrames} = this.app.picture;
		if (!hitFrames) return [];
		const {bytes} = sumInclusive(model, sumGroups(model, choice, selected, groupCells(model, "stack"), mask)),
			found = [...hitFrames.keys()].filter((frame) => hitFrames[frame] && bytes[frame]);
		found.sort((a, b) => bytes[b] - bytes[a]);
		const run = found.length ? 0 : sumHits(this.picture);
		return [
			section("Found", formatWhole(found.length)),
			run > 0 && this.linkRow("none selected; made in the whole run", formatBytes(run), {selection: WHOLE_RUN}),
			...found.slice(0, FOUND_MAX).map((frame) => this.drawFunction(frame, formatBytes(bytes[frame]))),
		];
	}

	/** @param {any} answer a map @returns {Child[]} the stacks that keep pages which are nearly empty */
	drawKeepers({stacks, stack_count: count, page_bytes: size}) {
		const shown = stacks.slice(0, KEEPERS_MAX),
			isOfWhy = this.app.trace.findings?.some(({kind, command}) => kind === "pinned" && /^xheap why /.test(command));
		return [
			section(
				"Keep nearly empty pages",
				count > shown.length ? `${shown.length} of ${formatWhole(count)} stacks` : "",
			),
			...(count ? [] : [make("p.faint", "No stack: no page is less than ¼ full.")]),
			isOfWhy && make("p.faint", "Of what blocks requested. The finding counts what they take, on resident pages."),
			...shown.flatMap((/** @type {any} */ stack) => [
				make(
					"p.freed",
					make("b", formatBytes(stack.pages * size)),
					` kept by ${formatBytes(stack.bytes)} in ${formatBlocks(stack.blocks)}, the oldest from ${formatTime(stack.oldest_ns)}`,
				),
				this.drawFrames(readFrames(stack.frames)),
			]),
		];
	}

	/** @param {number} frame index of frames @param {string} value */
	drawFunction(frame, value) {
		const {short, key, full} = this.picture.model.cells.frames[frame];
		return this.linkRow(cutText(short, 200), value, {item: {kind: "group", by: "inclusive", key}}, full);
	}

	/** @param {string} words @param {string} value @param {Partial<State>} members that a click sets @param {string} [title] */
	linkRow(words, value, members, title = "") {
		return make(
			"button.part.link-row",
			{title: cutText(title, TITLE_MAX), onclick: () => this.app.store.set(members)},
			name(words),
			make("span.value", value),
		);
	}

	/** @param {Item} item @param {Frame | null} frame of a function @returns {Child[]} its direct callers */
	drawCallers(item, frame) {
		if (!frame || frame.marks & MARK_WORD || item.kind === "path" || item.by === "stack") return [];
		const {model, selected} = this.picture;
		if (this.callers?.hits !== selected.hits && !this.app.store.isDragging)
			this.callers = {
				hits: selected.hits,
				...neighboursOf(model, selected.hits, "bytes", model.cells.frames.indexOf(frame)),
			};
		const rows = (this.callers?.callers ?? []).filter(({frame: caller}) => caller >= 0);
		return [
			rows.length > 0 &&
				section("Called by", rows.length > CALLERS_MAX ? `${CALLERS_MAX} of ${rows.length}` : ""),
			...rows
				.slice(0, CALLERS_MAX)
				.map(({frame: caller, value}) =>
					this.drawFunction(caller, formatShare(value / (this.callers?.value ?? 1))),
				),
		];
	}

	/** @returns {Child[]} */
	drawFindings() {
		const findings = this.app.trace.findings ?? [],
			{filters, words} = this.app.store.state;
		return [
			section("Findings", filters.length || words ? "of the whole run, not filtered" : "of the whole run"),
			...(findings.length ? [] : [make("p.faint", this.app.trace.live ? this.app.lacking : "Nothing stands out.")]),
			...findings.slice(0, 5).map((finding) => this.drawFinding(finding)),
		];
	}

	/** @param {any} finding */
	drawFinding(finding) {
		const {select} = finding,
			item = this.itemOf(finding);
		/** @type {When | null} */
		const selection = !select
			? null
			: select.at_ns !== undefined
				? {kind: "moment", at: select.at_ns}
				: {
						kind: "window",
						from: select.from_ns,
						to: select.to_ns,
						classes: readClasses((select.classes ?? []).join("+")),
					};
		return make(
			"button.finding",
			{
				title: [finding.text, finding.command].map((text) => cutText(tellTime(text), 600)).join("\n"),
				onclick: () =>
					this.app.store.set({
						...(selection && {selection}),
						...(isOfPages(finding) && {view: /** @type {const} */ ("map")}),
						item,
					}),
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
				make(
					"span.finding-text",
					cutText(tellTime(finding.title ?? finding.text), 300) +
						(finding.stack && ONE_STACK.includes(finding.kind) && !/\bstacks\b/.test(finding.text)
							? ", in one stack"
							: ""),
				),
				finding.evidence && make("span.evidence", cutText(tellTime(finding.evidence), 300)),
			),
		);
	}

	/** @param {any} finding @returns {Item | null} its stack; the function, if the stack is lumped or not told, or keeps pages */
	itemOf(finding) {
		if (isOfPages(finding)) return {kind: "group", by: "function", key: keyOf(finding.function)};
		const stack = finding.stack && stackId(finding.stack.map(keyOf));
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
			"div.parts",
			{"aria-hidden": "true"},
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
					"div.part",
					make("span", {class: `swatch ${part.swatch}`}),
					make("span.name", part.words),
					make("span.value", formatBytes(part.value)),
				),
			),
		];
	}

	/** @returns {Child[]} */
	drawProcesses() {
		const {whole} = this.app,
			bytes = processPeaks(whole),
			rows = [...bytes.keys()].sort((a, b) => bytes[b] - bytes[a]),
			more = rows.length - PROCESSES_MAX;
		if (rows.length < 2) return [];
		return [
			section(`${formatWhole(rows.length)} processes`, "at the peak"),
			...rows
				.slice(0, PROCESSES_MAX)
				.map((i) =>
					this.linkRow(groupName(whole, "process", i).name, formatBytes(bytes[i]), {
						filters: [{by: "process", key: String(i), hide: false}],
					}),
				),
			more > 0 && make("p.faint", `${more} more: table by process`),
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
		const mark = about.placed ? app.flame.markOf(about.placed) : selectionMark(app.picture);
		const numbers = [
			[mark + formatBytes(bytes), "selected"],
			[formatShare(bytes / app.picture.selected.bytes), "of it"],
			...this.shareOfFunction(item, about.frame, bytes),
			[mark + formatWhole(blocks), "blocks"],
			...(facts.isMost
				? [
						[
							app.picture.live + formatBytes(facts.most),
							`at most, at ${formatTime(cells.bounds[facts.mostAt])}`,
						],
					]
				: []),
			[app.picture.made + formatBytes(facts.made), cells.whole ? "made in all" : "made in range"],
			[formatBytes(facts.neverFreed), "never freed"],
		];
		return [
			section(about.kind, ""),
			this.closer({item: null}),
			make("h3.item-name", {title: cutText(about.full, 400)}, name(cutText(about.full, 600))),
			about.place && make("p.item-place", name(cutText(about.place, 300))),
			app.compare.tellOwn(),
			drawNumbers(numbers),
			this.drawButtons(item, about.frame),
			...this.drawCallers(item, about.frame),
			...(node >= 0 ? this.drawStack(node, item) : []),
			...(node >= 0 ? this.drawFrees(this.freedOf(item, node, own[0]), bytes) : []),
		];
	}

	/** @param {Item} item @param {Frame | null} frame @param {number} bytes of the item @returns {string[][]} the share of its function in all stacks, if that is more */
	shareOfFunction(item, frame, bytes) {
		const {model, selected} = this.picture,
			{cells} = model,
			isPath = item.kind === "path";
		if (!frame || frame.marks & MARK_WORD || (!isPath && item.by !== "stack")) return [];
		const {keys} = groupCells(model, "function"),
			paths = isPath ? pathsWith(model, (i) => cells.frames[i] === frame) : null;
		let sum = 0;
		for (let i = 0; i < cells.count; i++)
			if (selected.hits[i] && (paths ? paths[cells.node[i]] : cells.frames[keys[i]] === frame))
				sum += cells.bytes[i];
		return sum > bytes ? [[formatShare(sum / this.app.picture.selected.bytes), "its function, in all stacks"]] : [];
	}

	/** @param {Uint32Array} own cells @returns {number} the node that asked for most of these bytes: in the selection, else in the run */
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

	/** @param {Item} item @returns {{kind: string, full: string, place: string, frame: Frame | null, placed: any}} what the head of the panel says */
	describeItem(item) {
		const {model} = this.picture,
			{cells} = model;
		if (item.kind === "path") {
			const placed = this.app.flame.layout.frames.find(
					(/** @type {Placed} */ {path, kind}) =>
						path === item.path && ["frame", "chain", "group"].includes(kind),
				),
				isGroup = placed?.kind === "group",
				frame = placed && !isGroup ? cells.frames[placed.frame] : null,
				kind = isGroup ? GROUPING_WORDS[this.app.store.state.by] : "Frame on this path";
			return {kind, frame, placed, ...tellPlace(frame, placed?.name ?? "not to be seen in this selection", "")};
		}
		const by = item.by === "inclusive" ? "function" : item.by,
			words =
				{function: "Function, in all its stacks", inclusive: "Function, with callees"}[item.by + ""] ??
				GROUPING_WORDS[by],
			key = findGroup(model, by, item.key),
			group = key < 0 ? {name: "nothing of it in this range", detail: ""} : groupName(model, by, key),
			at = by === "function" ? key : by === "stack" ? cells.frame[key] : -1,
			frame = cells.frames[at] ?? null;
		return {kind: capital(words), frame, placed: null, ...tellPlace(frame, group.name, group.detail)};
	}

	/** @param {Item} item @param {Frame | null} [frame] of it @returns {Filter | null} that keeps its function, or what it is */
	filterOf(item, frame = this.describeItem(item).frame) {
		if (frame && !(frame.marks & MARK_WORD)) return {by: "function", key: frame.key, hide: false};
		return item.kind === "group" && item.by !== "stack" && item.by !== "inclusive"
			? {by: item.by, key: item.key, hide: false}
			: null;
	}

	/** @param {Item} item @param {Frame | null} frame */
	drawButtons(item, frame) {
		const {store} = this.app,
			{filters} = store.state,
			filter = this.filterOf(item, frame);
		const button = (/** @type {string} */ words, /** @type {() => void} */ onclick, title = "") =>
			make("button.button", {onclick, title}, words);
		const add = (/** @type {boolean} */ hide) =>
			filter && store.set({filters: [...filters, {...filter, hide}], item: null, focus: ""});
		return make(
			"div.buttons",
			filter && button("Only this", () => add(false)),
			filter && button("Hide", () => add(true)),
			frame &&
				frame.image &&
				button(
					"Hide image",
					() => store.set({filters: [...filters, {by: "image", key: frame.image, hide: true}], item: null}),
					`Hide all stacks through ${cutText(frame.image, 80)}`,
				),
			button("Its blocks", () => store.set({view: "blocks"})),
			button("Who frees it", () => document.getElementById("freed")?.scrollIntoView()),
			item.kind === "path" && button("Focus", () => store.set({focus: item.path, item: null})),
		);
	}

	/** @param {number} node @param {Item} item @returns {Child[]} frames, innermost first */
	drawStack(node, item) {
		const {cells} = this.picture.model,
			frames = [];
		for (let at = node; at >= 0; at = cells.parent[at])
			frames.push({frame: cells.frames[cells.frame[at]], line: cells.line[at], isInlined: cells.inlined[at] === 1});
		const isOne = item.kind === "group" && item.by === "stack";
		return [
			section(
				isOne ? "Made by" : "Made by, its largest stack",
				`${frames.length} ${frames.length === 1 ? "frame" : "frames"}`,
			),
			this.drawFrames(frames),
		];
	}

	/** @param {{frame: Frame, line: number, isInlined: boolean}[]} frames @param {number} [first] the first ones are those of the stack above */
	drawFrames(frames, first = 0) {
		const most = this.isLong ? frames.length : first + FRAMES_MAX;
		return make(
			"ol.stack",
			first > 0 && make("li.faint", `${first} ${first > 1 ? "frames" : "frame"} as above, then`),
			...frames
				.slice(first, most)
				.map(({frame, line, isInlined}) =>
					make(
						"li",
						{class: frame.marks & MARK_LIBRARY ? "library" : ""},
						make(
							"div.stack-name",
							{title: cutText(frame.full, 400)},
							name(cutText(frame.short, 300)),
							isInlined && make("span.faint", " inlined"),
						),
						this.drawPlace(frame, line),
						...(this.source === this.frames ? this.drawSource(frame, line) : []),
					),
				),
			frames.length > most &&
				make(
					"li",
					make(
						"button.link",
						{
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

	/** @param {Frame} frame @param {number} line @returns {HTMLElement} where a frame is; a button if its lines can be asked for */
	drawPlace(frame, line) {
		const {file, image} = frame,
			id = ++this.frames,
			words = name(cutText(file ? endOfPath(file) + (line ? `:${line}` : "") : image, 200)),
			title = cutText(file || image, TITLE_MAX);
		if (!file.startsWith("/") || !this.app.source.isServer) return make("div.stack-place", {title}, words);
		return make(
			"button.stack-place.link",
			{
				title,
				"aria-expanded": this.source === id,
				onclick: () => {
					this.source = this.source === id ? 0 : id;
					this.app.redraw();
				},
			},
			words,
		);
	}

	/** @param {Frame} frame @param {number} line @returns {Child[]} lines of its file, and beside them bytes of the stacks that go through */
	drawSource({key}, line) {
		const query = {...this.asked().query, ...askedSelection(this.picture), function: key, line: String(line)},
			found = this.app.find("source", query),
			{answer} = found,
			mark = selectionMark(this.app.picture);
		if (!answer) return [tellNone(found)];
		return [
			answer.is_newer && make("p.more", "The file was changed after the recording."),
			!answer.lines.length && make("p.more", "The file has no such line."),
			make(
				"div.source",
				...answer.lines.map((/** @type {any} */ {text, bytes}, /** @type {number} */ i) =>
					make(
						answer.first + i === answer.line ? "div.source-line.chosen" : "div.source-line",
						{title: cutText(safeText(text), TITLE_MAX)},
						make("span.value", bytes ? mark + formatBytes(bytes) : ""),
						make("span.faint", String(answer.first + i)),
						make("code", name(cutText(safeText(text.replaceAll("\t", "  ")), 200))),
					),
				),
			),
		];
	}

	/**
	 * @param {Item} item @param {number} node its largest stack
	 * @param {number} cell one of its own
	 * @returns {{query: Record<string, string>, isLargest: boolean, lacks: string[]}} who freed: of all stacks of the item, or, where a
	 * question cannot name these, of the largest one
	 */
	freedOf(item, node, cell) {
		const {model} = this.picture,
			{frame, frames} = model.cells,
			{state} = this.app.store,
			{isInverted, isMerged, isFolded, by} = state,
			filters = [...state.filters];
		/** @type {Record<string, string>} */
		let stacks = {};
		if (item.kind === "path") {
			const hashes = frameHashes(model),
				keys = item.path.split(".").map((word) => frames[hashes.indexOf(parseInt(word, 36))]?.key ?? "");
			if (by === "process" || by === "thread") {
				filters.push({by, key: groupName(model, by, groupCells(model, by).keys[cell]).id, hide: false});
				keys.shift();
			}
			if (keys.length) stacks = {[isInverted ? "ends" : "node"]: keys.join("\n")};
			if (isMerged) stacks.merged = "1";
			if (!isFolded) stacks.whole = "1";
		} else if (item.by === "function") stacks = {asker: item.key};
		else if (item.by === "inclusive") stacks = {through: item.key};
		else if (item.by === "stack") stacks = {node: pathKey(model, node), asker: frames[frame[node]].key};
		else if (item.by === "image") stacks = {asker: `${item.key}!`};
		else filters.push({by: item.by, key: item.key, hide: false});
		const typed = splitWords(state.words),
			{words, lacks} = optionsOf(this.app, filters, typed),
			isLargest = lacks.length > 0 && !Object.keys(stacks).length;
		return {
			query: {...(isLargest ? {node: pathKey(model, node)} : stacks), filter: [...typed, ...words].join("\n")},
			isLargest,
			lacks,
		};
	}

	/** @param {{query: Record<string, string>, isLargest: boolean}} asked @param {number} selected bytes that the panel says @returns {Child[]} the stacks that freed the selected blocks */
	drawFrees(asked, selected) {
		if (!this.app.source.isServer)
			return [freedBy(), make("p.faint", "This file does not say who freed; xheap view does.")];
		const found = this.app.find("frees", {...asked.query, ...askedSelection(this.picture)});
		if (!found.answer) return [freedBy(), tellNone(found)];
		const {stacks, bytes, left_out: leftOut, never_freed: never} = found.answer,
			shown = stacks.slice(0, FREED_MAX),
			more = stacks.length + leftOut - shown.length,
			rest = shown.reduce(
				(/** @type {number} */ sum, /** @type {any} */ stack) => sum - stack.bytes,
				bytes - never.bytes,
			);
		const base = asked.isLargest
			? `of its largest stack, ${formatBytes(bytes)} of ${formatBytes(selected)}`
			: `of ${formatBytes(bytes)}${bytes === selected ? "" : `, not the ${formatBytes(selected)} above`}`;
		if (!stacks.length)
			return [
				freedBy(base),
				make("p.faint", "Nothing has freed these blocks. Choose the whole run (w) for all that was made here."),
			];
		return [
			freedBy(base),
			...shown.map((/** @type {any} */ stack, /** @type {number} */ i) =>
				make(
					"div",
					make(
						"p.freed",
						make("b", formatShare(stack.bytes / bytes)),
						` ${formatBytes(stack.bytes)} in ${formatBlocks(stack.blocks)}`,
					),
					this.drawFrames(readFrames(stack.frames), i ? sameFrames(stack.frames, shown[i - 1].frames) : 0),
				),
			),
			rest > 0 &&
				make(
					"p.faint",
					more
						? `${formatWhole(more)} more ${more > 1 ? "stacks" : "stack"}, ${formatBytes(rest)}`
						: `no known stack, ${formatBytes(rest)}`,
				),
			never.bytes > 0 && make("p.faint", `never freed, ${formatBytes(never.bytes)}`),
		];
	}
}
