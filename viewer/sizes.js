// SPDX-License-Identifier: MIT
// What kind of blocks: sizes by lifetimes. An area that is dragged becomes a filter of the server, which knows each block.
import {cellWeights, groupCells, largestOf} from "./cells.js";
import {splitFilters} from "./command.js";
import {byId, fill, listen, make} from "./elements.js";
import {
	ANY_LIFE,
	ANY_SIZE,
	commandTime,
	formatBytes,
	formatMeasure,
	formatTick,
	lifeLimit,
	lifeName,
	sizeName,
} from "./format.js";
import {mixColors, readable} from "./palette.js";
import {selectionMark} from "./picture.js";
import {NEVER_FREED} from "./store.js";

/** Narrower cells have no number. Pixels. */
const NUMBER_WIDTH = 40;
/** Small values are still to be seen: a shade is this power of the share. */
const SHADE_POWER = 0.42;
const NEVER = Number(NEVER_FREED),
	LIVES = NEVER + 1;
/** Filters that an area takes the place of. */
const OF_AREA = /^-(size|lifetime|closed)\b/i;

/** @param {Model} model @param {Uint8Array} hits @param {Measure} measure @returns {{sums: Float64Array, sizes: number[], lives: number[]}} sums by `size * LIVES + life`, and the rows and columns with any, those between them too */
export function sumKinds(model, hits, measure) {
	const {keys} = groupCells(model, "life"),
		{size} = model.cells,
		weights = cellWeights(model, measure),
		sums = new Float64Array(65 * LIVES);
	for (let i = 0; i < hits.length; i++) if (hits[i]) sums[size[i] * LIVES + keys[i]] += weights[i];
	const present = [...sums.keys()].filter((at) => sums[at]);
	const between = (/** @type {number[]} */ all, /** @type {number[]} */ apart) => {
		const inside = all.filter((key) => !apart.includes(key)),
			first = Math.min(...inside),
			count = Math.max(0, Math.max(...inside) - first + 1);
		return [...Array.from({length: count}, (_, i) => first + i), ...apart.filter((key) => all.includes(key))];
	};
	const sizes = between(
			present.map((at) => Math.floor(at / LIVES)),
			[ANY_SIZE],
		),
		lives = between(
			present.map((at) => at % LIVES),
			[ANY_LIFE, NEVER],
		);
	return {sums, sizes, lives};
}

export class Sizes {
	/** @param {App} app */
	constructor(app) {
		this.app = app;
		this.box = byId("sizes");
		this.frame = make("div.kinds-area", {hidden: true});
		/** @type {number[]} */
		this.sizes = [];
		/** @type {number[]} */
		this.lives = [];
		/** @type {Float64Array} */
		this.sums = new Float64Array(0);
		this.most = 0;
		this.isWide = false;
		/** @type {(() => void)[]} */
		this.paints = [];
		/** The corners of the area that is dragged, as places of rows and columns. @type {[number, number, number, number] | null} */
		this.area = null;
		listen(this.box, {
			pointerdown: (event) => {
				const at = event.button ? null : this.placeAt(event);
				this.area = at && [...at, ...at];
				this.isDragging = Boolean(at);
				this.drawArea();
			},
			pointermove: (event) => this.isDragging && this.extend(this.placeAt(event)),
			pointerup: () => this.isDragging && this.choose(),
			keydown: (event) => this.key(event),
		});
	}

	render() {
		const {store, picture} = this.app,
			{sums, sizes, lives} = sumKinds(picture.model, picture.selected.hits, store.state.measure),
			isShown =
				sizes.every((size) => this.sizes.includes(size)) && lives.every((life) => this.lives.includes(life));
		this.sums = sums;
		this.most = largestOf(sums).value;
		byId("nothing").hidden = this.most > 0;
		// A drag changes numbers and shades; rows and columns stay while they suffice.
		if (!store.isDragging || !isShown) this.drawAll(sizes, lives);
		for (const paint of this.paints) paint();
		this.drawArea();
	}

	/** @param {number[]} sizes @param {number[]} lives rows and columns, which are filled by `paints` */
	drawAll(sizes, lives) {
		const {app, box} = this;
		this.sizes = sizes;
		this.lives = lives;
		this.isWide = (box.clientWidth - 260) / lives.length >= NUMBER_WIDTH;
		/** @type {(() => void)[]} */
		this.paints = [];
		const put = (/** @type {string} */ role, /** @type {string} */ words, kind = "", title = "") =>
				make("div", {role, title, class: kind}, words),
			line = (/** @type {Child[]} */ ...children) => make("div.kinds-row", {role: "row"}, ...children),
			sum = (/** @type {number[]} */ rows, /** @type {number[]} */ columns, kind = "kind-sum") => {
				const element = put("gridcell", "", kind);
				this.paints.push(() => {
					const value = this.of(rows, columns),
						words = value ? selectionMark(app.picture) + this.tell(value) : "";
					element.textContent = kind === "kind-all" ? this.shorten(value) : words;
					element.title = words;
				});
				return element;
			};
		box.style.gridTemplateColumns = `auto repeat(${lives.length}, minmax(0, 1fr)) auto`;
		fill(
			box,
			line(
				put("columnheader", "size"),
				...lives.map((life) => put("columnheader", shortLife(life, this.isWide), "kind-life", lifeWords(life))),
				put("columnheader", "all", "kind-sum"),
			),
			...sizes.map((size, row) =>
				line(
					put("rowheader", size % ANY_SIZE ? `from ${formatBytes(2 ** (size - 1))}` : sizeName(size)),
					...lives.map((life, column) => {
						const element = put("gridcell", "", life === NEVER ? "kind never" : "kind");
						element.dataset.place = `${row} ${column}`;
						let shown = NaN;
						this.paints.push(() => {
							const value = this.sums[size * LIVES + life],
								share = value / this.most || 0;
							if (shown === value + share) return;
							shown = value + share;
							this.paint(element, value, share, `${sizeName(size)}, ${lifeWords(life)}`);
						});
						return element;
					}),
					sum([size], lives),
				),
			),
			line(
				put("rowheader", "all"),
				...lives.map((life) => sum(sizes, [life], "kind-all")),
				sum(sizes, lives, "kind-sum kind-total"),
			),
			this.frame,
		);
	}

	/** @param {HTMLElement} element @param {number} value @param {number} share of the largest one @param {string} kind of blocks */
	paint(element, value, share, kind) {
		const {less, panel, ink} = this.app.palette,
			ground = value ? mixColors(less, panel, 0.06 + 0.84 * share ** SHADE_POWER) : panel;
		element.textContent = this.shorten(value);
		element.title = value ? `${kind}: ${selectionMark(this.app.picture)}${this.tell(value)}` : "";
		element.style.background = ground;
		element.style.color = readable(ground, [ink, "#000000", "#ffffff"]);
	}

	/** @param {number[]} rows @param {number[]} columns @returns {number} */
	of(rows, columns) {
		return rows.reduce(
			(sum, size) => columns.reduce((more, life) => more + this.sums[size * LIVES + life], sum),
			0,
		);
	}

	/** @param {number} value @returns {string} */
	tell(value) {
		return formatMeasure(value, this.app.store.state.measure);
	}

	/** @param {number} value @returns {string} in a narrow place */
	shorten(value) {
		return this.isWide && value ? this.tell(value).replace("\u2009", "").replace("iB", "") : "";
	}

	/** @param {MouseEvent} event @returns {[number, number] | null} row and column there */
	placeAt(event) {
		const found = document.elementFromPoint(event.clientX, event.clientY)?.closest("[data-place]"),
			[row, column] = (found?.getAttribute("data-place") ?? "").split(" ").map(Number);
		return column >= 0 && this.sizes[row] !== ANY_SIZE && this.lives[column] !== ANY_LIFE ? [row, column] : null;
	}

	/** @param {[number, number] | null} place @returns {void} the other corner; lifetimes and never freed are not one area */
	extend(place) {
		const {area, lives} = this;
		if (!area || !place || (lives[place[1]] === NEVER) !== (lives[area[1]] === NEVER)) return;
		this.area = [area[0], area[1], ...place];
		this.drawArea();
	}

	/** @returns {{rows: number[], columns: number[]} | null} sizes and lifetimes of the area, in order */
	chosen() {
		if (!this.area) return null;
		const [row, column, otherRow, otherColumn] = this.area;
		return {
			rows: [Math.min(row, otherRow), Math.max(row, otherRow)],
			columns: [Math.min(column, otherColumn), Math.max(column, otherColumn)],
		};
	}

	drawArea() {
		const chosen = this.chosen();
		this.frame.hidden = !chosen;
		if (!chosen) return;
		const [[top, bottom], [left, right]] = [chosen.rows, chosen.columns];
		this.frame.style.gridArea = `${top + 2} / ${left + 2} / ${bottom + 3} / ${right + 3}`;
	}

	/** The area becomes a filter. */
	choose() {
		const chosen = this.chosen(),
			{store} = this.app,
			{words, filters} = store.state;
		this.area = null;
		this.isDragging = false;
		if (!chosen) return;
		const [least, most] = chosen.rows.map((row) => this.sizes[row]),
			[first, last] = chosen.columns.map((column) => this.lives[column]),
			own = [`-size ${least ? 2 ** (least - 1) : 0} ${2 ** most}`];
		if (first !== NEVER)
			own.push("-closed", `-lifetime ${commandTime(lifeLimit(first))} ${commandTime(lifeLimit(last + 1))}`);
		const others = filters.filter(({by}) => by !== "size" && by !== "life");
		store.set({
			words: [...splitFilters(words).filter((filter) => !OF_AREA.test(filter)), ...own].join(" "),
			filters: first === NEVER ? [...others, {by: "life", key: NEVER_FREED, hide: false}] : others,
			item: null,
		});
	}

	/** @param {KeyboardEvent} event arrows move the area, with Shift its corner */
	key(event) {
		const step = /** @type {Record<string, [number, number]>} */ ({
			ArrowLeft: [0, -1],
			ArrowRight: [0, 1],
			ArrowUp: [-1, 0],
			ArrowDown: [1, 0],
		})[event.key];
		if (event.key === "Enter") this.choose();
		else if (!step) return;
		else {
			const [, , row, column] = this.area ?? [0, 0, 0, -step[1]],
				place = /** @type {[number, number]} */ ([
					Math.max(0, Math.min(this.sizes.length - 1, row + step[0])),
					Math.max(0, Math.min(this.lives.length - 1, column + step[1])),
				]);
			if (event.shiftKey && this.area) this.extend(place);
			else this.area = [...place, ...place];
			this.drawArea();
			this.app.say(
				this.box.querySelector(`[data-place="${place.join(" ")}"]`)?.getAttribute("title") || "nothing",
			);
		}
		event.preventDefault();
	}
}

/** @param {number} life @returns {string} */
function lifeWords(life) {
	return life === NEVER ? "never freed" : `lived ${lifeName(life)}`;
}

/** @param {number} life @param {boolean} isWide @returns {string} where it begins, or decades do */
function shortLife(life, isWide) {
	if (life === NEVER) return "never";
	if (life === ANY_LIFE) return "any";
	return isWide || life % 2 ? formatTick(lifeLimit(life), lifeLimit(life)) : "";
}
