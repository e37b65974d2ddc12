// SPDX-License-Identifier: MIT
// What lies where: the pages of the heap at a moment, a square each by address, and who keeps those that are nearly empty. The server finds them.
import {findGroup, findSeries, groupName} from "./cells.js";
import {keyOf} from "./decode.js";
import {byId, fill, listen, make, name, placeTip, prepareCanvas} from "./elements.js";
import {formatBlocks, formatBytes, formatTime, formatWhole} from "./format.js";
import {cutText, DRAWN_MAX, safeText} from "./hostile.js";
import {mixColors} from "./palette.js";
import {FONT} from "./timeline.js";

/** Squares: the first that needs no scrolling, else the last. Then the line above a range. Pixels. */
const SQUARES = [16, 12, 9, 7, 5, 4],
	RANGE_HEAD = 22;
/** Bytes without blocks behind which a new range begins. */
const RANGE_GAP = 1 << 20;
/** Of pages, by the number of their fullness. */
const FULLNESS_WORDS = ["no live block", "less than ¼ full", "¼ to ½", "½ to ¾", "¾ to full"];
const NO_BLOCK = "no block so far";
/** In which part of the time up to the moment the oldest block of a page was made. */
const AGE_WORDS = ["first", "second", "third", "last"].map((part) => `oldest block of the ${part} quarter`);

/** @param {any} answer @returns {MapRange[]} runs of pages without large gaps between them */
export function divideRuns({runs: {process, gap, pages}, page_bytes: size}) {
	const ranges = /** @type {MapRange[]} */ ([]);
	let index = 0;
	for (let run = 0; run < pages.length; run++) {
		let range = ranges.at(-1);
		const isSame = range?.process === process[run],
			page = gap[run] + (range && isSame ? range.page + range.pages : 0);
		if (!range || !isSame || gap[run] * size > RANGE_GAP)
			ranges.push((range = {process: process[run], page, index, pages: 0, top: 0, runs: []}));
		range.runs.push({run, offset: page - range.page});
		index += page + pages[run] - range.page - range.pages;
		range.pages = page + pages[run] - range.page;
	}
	return ranges;
}

export class PageMap {
	/** @param {App} app */
	constructor(app) {
		this.app = app;
		this.box = byId("map-pages");
		this.canvas = make("canvas", {"aria-hidden": "true"});
		this.spacer = make("div.flame-spacer");
		this.tip = byId("tip");
		this.box.replaceChildren(this.canvas, this.spacer);
		/** What is drawn. @type {any} */
		this.answer = null;
		this.time = 0;
		/** @type {MapRange[]} */
		this.ranges = [];
		this.size = this.columns = 1;
		/** The page that the pointer or a key is on, counted over all ranges; -1: none. */
		this.at = -1;
		listen(this.box, {
			scroll: () => this.draw(),
			pointermove: (event) => this.point(this.indexAt(event), event),
			pointerleave: () => this.point(-1),
			click: () => this.choose(),
			keydown: (event) => this.key(event),
		});
	}

	render() {
		if (this.app.store.isDragging && this.answer) return;
		const {app} = this,
			{choice, model} = app.picture,
			time = Math.max(0, model.cells.bounds[choice.kind === "moment" ? choice.at : choice.to]),
			{query, lacks} = app.panel.filtered(),
			{answer, error} = app.find("map", {...query, at: String(time)});
		byId("nothing").hidden = true;
		if (answer && answer !== this.answer) {
			this.answer = answer;
			this.time = time;
			this.ranges = divideRuns(answer);
			this.at = -1;
		}
		const isKnown = this.answer && !error;
		fill(
			byId("map-head"),
			...(isKnown ? [this.tellKept(lacks, query.filter !== ""), this.drawColors()] : [safeText(error) || "being found …"]),
		);
		this.box.hidden = !isKnown;
		if (isKnown) this.layout();
	}

	/** @param {string[]} lacks what the server is not told @param {boolean} hasFilter @returns {HTMLElement} the sentence that answers */
	tellKept(lacks, hasFilter) {
		const {fullness, keepers, left_out: more, page_bytes: size} = this.answer,
			[none, little] = fullness,
			[first] = keepers,
			kept = first
				? [
						make("b", formatBytes(little.pages * size)),
						" are kept by ",
						make("b", formatBytes(little.bytes)),
						`: ${formatWhole(little.pages)} pages are less than ¼ full, `,
						make(
							"button.answer-link",
							{onclick: () => this.select(first.function)},
							name(nameOf(first.function)),
						),
						` on ${formatWhole(first.pages)} of them. `,
					]
				: ["No page is less than ¼ full. "];
		return make(
			"p",
			...kept,
			hasFilter
				? "Only pages with blocks that pass the filters; all blocks fill them."
				: `${formatBytes(none.pages * size)} have no live block; the log does not say which of these pages the system has back.`,
			more > 0 && ` ${formatWhole(more)} more runs of pages are not drawn.`,
			lacks.length > 0 && ` Not told: ${lacks.join(", ")}.`,
		);
	}

	/** @returns {{of: (run: number) => string, rows: [string, string][]}} the colour of a run, and what colours mean */
	colors() {
		const {answer, time} = this,
			{palette, whole, store} = this.app,
			{runs, functions, fullness} = answer,
			mix = (/** @type {number} */ share) => mixColors(palette.less, palette.panel, share),
			none = palette.line;
		if (store.state.map === "fullness") {
			const shades = [none, palette.series[4], palette.series[1], mix(0.25), mix(0.5)];
			return {
				of: (run) => shades[runs.fullness[run]],
				rows: shades.map((color, i) => [color, `${FULLNESS_WORDS[i]}: ${formatWhole(fullness[i].pages)}`]),
			};
		}
		if (store.state.map === "age") {
			const shades = AGE_WORDS.map((_, i) => mix(1 - i / 4));
			return {
				of: (run) =>
					runs.fullness[run]
						? shades[Math.min(3, Math.floor((runs.oldest_ns[run] / (time || 1)) * 4))]
						: none,
				rows: AGE_WORDS.map((words, i) => [shades[i], words]),
			};
		}
		const base = whole.whole ?? whole,
			{groups, ofGroup} = findSeries(base, "function"),
			shades = functions.map(
				(/** @type {string[]} */ words) =>
					palette.series[ofGroup[findGroup(base, "function", keyOf(words))]] ?? palette.others,
			);
		return {
			of: (run) => shades[runs.function[run] - 1] ?? none,
			rows: groups.map((key, i) => [palette.series[i], groupName(base, "function", key).name]),
		};
	}

	/** @returns {HTMLElement} what the colours mean */
	drawColors() {
		return make(
			"p.colors",
			...[...this.colors().rows, [this.app.palette.faint, NO_BLOCK]].map(([color, words]) => {
				const swatch = make("i.swatch");
				swatch.style.background = color;
				return make("span", swatch, " ", name(cutText(words, 40)));
			}),
		);
	}

	/** Gives ranges their places. */
	layout() {
		const {clientWidth, clientHeight} = this.box;
		let height = 0;
		for (this.size of SQUARES) {
			this.columns = Math.max(1, Math.floor((clientWidth - 1) / this.size));
			height = 0;
			for (const range of this.ranges) {
				range.top = height;
				height += RANGE_HEAD + (Math.ceil(range.pages / this.columns) + 1) * this.size;
			}
			if (height <= clientHeight) break;
		}
		this.spacer.style.height = `${height}px`;
		this.box.setAttribute(
			"aria-label",
			`Pages by address. ${FULLNESS_WORDS.map((words, i) => `${words}: ${formatWhole(this.answer.fullness[i].pages)}`).join(", ")}`,
		);
		this.draw();
	}

	draw() {
		const {box, size, columns} = this,
			{clientWidth: width, clientHeight: height, scrollTop} = box,
			{palette} = this.app,
			context = prepareCanvas(this.canvas, width, height);
		if (!this.answer) return;
		const colors = this.colors(),
			{pages} = this.answer.runs;
		context.font = FONT;
		context.textBaseline = "middle";
		for (const range of this.ranges) {
			const top = range.top + RANGE_HEAD - scrollTop,
				rows = Math.ceil(range.pages / columns);
			if (top > height || top + rows * size < 0) continue;
			context.fillStyle = palette.ink2;
			context.fillText(cutText(this.tellRange(range), DRAWN_MAX), 0, top - RANGE_HEAD / 2);
			// Only what can be seen.
			const first = Math.max(0, Math.floor(-top / size)) * columns,
				last = Math.ceil((height - top) / size) * columns;
			const paint = (/** @type {number} */ from, /** @type {number} */ to, /** @type {string} */ color) => {
				context.fillStyle = color;
				for (let at = Math.max(from, first); at < Math.min(to, last);) {
					const column = at % columns,
						count = Math.min(columns - column, to - at);
					context.fillRect(column * size, top + ((at - column) / columns) * size, count * size, size);
					at += count;
				}
			};
			paint(0, range.pages, palette.faint);
			for (const {run, offset} of range.runs) paint(offset, offset + pages[run], colors.of(run));
			context.fillStyle = palette.panel;
			for (let column = 1; column <= columns; column++) context.fillRect(column * size - 1, top, 1, rows * size);
			for (let row = 1; row <= rows; row++) context.fillRect(0, top + row * size - 1, width, 1);
			const at = this.at - range.index;
			if (at < 0 || at >= range.pages) continue;
			context.strokeStyle = palette.ink;
			context.strokeRect((at % columns) * size, top + Math.floor(at / columns) * size, size - 1, size - 1);
		}
	}

	/** @param {MapRange} range @returns {string} */
	tellRange({process, page, pages}) {
		const {trace, whole} = this.app,
			size = this.answer.page_bytes,
			before = trace.processes.length > 1 ? `${groupName(whole, "process", process).name}, ` : "";
		return `${before}0x${(page * size).toString(16)}: ${formatBytes(pages * size)}`;
	}

	/** @param {MouseEvent} event @returns {number} the page there, or -1 */
	indexAt(event) {
		const {left, top} = this.box.getBoundingClientRect(),
			y = event.clientY - top + this.box.scrollTop,
			column = Math.floor((event.clientX - left) / this.size),
			range = this.ranges.findLast((other) => other.top + RANGE_HEAD <= y);
		if (!range || column >= this.columns) return -1;
		const offset = Math.floor((y - range.top - RANGE_HEAD) / this.size) * this.columns + column;
		return offset < range.pages ? range.index + offset : -1;
	}

	/** @returns {{range: MapRange, page: number, run: number} | null} the page that is pointed to; run: -1 if it has none */
	pointed() {
		const range = this.at < 0 ? null : this.ranges.findLast(({index}) => index <= this.at);
		if (!range) return null;
		const offset = this.at - range.index,
			found = range.runs.findLast((other) => other.offset <= offset),
			isIn = found && offset < found.offset + this.answer.runs.pages[found.run];
		return {range, page: range.page + offset, run: isIn ? found.run : -1};
	}

	/** @param {number} index of a page, or -1 @param {MouseEvent} [event] */
	point(index, event) {
		if (index !== this.at) {
			this.at = index;
			this.draw();
		}
		const words = this.tellPage();
		this.tip.hidden = !words.length || !event;
		if (this.tip.hidden || !event) return;
		fill(this.tip, ...words.map((text) => make("div", name(cutText(text, 300)))));
		placeTip(this.tip, event);
	}

	/** @returns {string[]} what is known of the page that is pointed to */
	tellPage() {
		const found = this.pointed(),
			{runs, functions, page_bytes: size} = this.answer ?? {};
		if (!found) return [];
		const {run, page} = found,
			address = `0x${(page * size).toString(16)}`;
		if (run < 0) return [address, NO_BLOCK];
		const count = runs.pages[run];
		return [
			`${address}: ${FULLNESS_WORDS[runs.fullness[run]]}`,
			...(runs.fullness[run]
				? [
						`${formatBytes(runs.bytes[run])} in ${formatBlocks(runs.blocks[run])}${count > 1 ? `, of ${formatWhole(count)} pages in a row` : ""}`,
						`most by ${nameOf(functions[runs.function[run] - 1])}, the oldest from ${formatTime(runs.oldest_ns[run])}`,
					]
				: []),
		];
	}

	/** @param {string[]} words a function of the answer */
	select(words) {
		this.app.store.set({item: {kind: "group", by: "function", key: keyOf(words)}});
	}

	/** Selects the function of the page that is pointed to. */
	choose() {
		const run = this.pointed()?.run ?? -1,
			words = this.answer?.functions[this.answer.runs.function[run] - 1];
		if (words) this.select(words);
	}

	/** @param {KeyboardEvent} event */
	key(event) {
		const {columns, size, ranges} = this,
			last = ranges.at(-1),
			step = /** @type {Record<string, number>} */ ({
				ArrowLeft: -1,
				ArrowRight: 1,
				ArrowUp: -columns,
				ArrowDown: columns,
			})[event.key];
		if (event.key === "Enter" || event.key === " ") this.choose();
		else if (!step || !last) return;
		else {
			this.at = Math.max(0, Math.min(last.index + last.pages - 1, this.at + step));
			const {range} = /** @type {any} */ (this.pointed()),
				top = range.top + RANGE_HEAD + Math.floor((this.at - range.index) / columns) * size;
			if (top < this.box.scrollTop || top + size > this.box.scrollTop + this.box.clientHeight)
				this.box.scrollTop = top - RANGE_HEAD;
			this.draw();
			this.app.say(this.tellPage().join(", "));
		}
		event.preventDefault();
	}
}

/** @param {string[]} words @returns {string} */
function nameOf([, short, full]) {
	return cutText(safeText(short || full), 80);
}
