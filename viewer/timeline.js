// SPDX-License-Identifier: MIT
// When, and who then: live bytes over time, stacked; calls; resident memory; gaps; the selection, which is dragged here.
import {cached, largestOf, liveCurve, nearestBound, residentCurve, seriesCurves, AIFO} from "./cells.js";
import {axisStep, formatBytes, formatTick, formatTime} from "./format.js";
import {byId, fill, fitText, FONT_FAMILY, listen, make, name, placeTip, prepareCanvas} from "./elements.js";
import {cutText, safeText} from "./hostile.js";
import {currentInk, describe, inkCurve} from "./picture.js";
import {mixColors} from "./palette.js";
import {WHOLE_RUN} from "./store.js";
import {markOther} from "./compare_view.js";

/** Pixels. */
const LEFT = 68,
	RIGHT = 12,
	TOP = 26,
	LANE = 26,
	AXIS = 22,
	HANDLE_WIDTH = 7,
	HANDLE_HEIGHT = 24,
	REACH = 8,
	CLICK_MAX = 3;
/** Resident memory that is so many times larger than the live bytes is left out. */
const RESIDENT_MAX = 2.6;
/** How much of the range a step of zooming leaves; a wheel needs so many pixels for a half. */
export const ZOOM = 0.25;
const WHEEL_HALF = 120;
/** Marks that are nearer than this are told together, and so many of them. */
const MARK_WIDTH = 6,
	MARK_Y = 6,
	MARKS_TOLD = 6;
export const FONT = `11px ${FONT_FAMILY}`;

/** Of each kind of mark: its sign, what it says before and behind its text, and whether something is missing there. */
const MARK_KINDS = /** @type {Record<string, [string, string, string, boolean]>} */ ({
	process_begin: ["▹", "", " begins", false],
	process_end: ["◃", "", " ends", false],
	process_killed: ["✕", "", "", true],
	loss: ["!", "", "", true],
	early_end: ["⊣", "recording ended: ", "", true],
	fold: ["Σ", "blocks that ended before are sums", "", true],
	dropped: ["⋯", "", " events before are not there any more", true],
	flush: ["⤓", "the flight recorder was written out", "", false],
	trigger: ["⚑", "triggered: ", "", false],
	user: ["◆", "", "", false],
});

/** @param {Trace} trace @returns {Mark[]} in the order of time */
export function marksOf(trace) {
	return (trace.marks ?? [])
		.map((mark) => {
			const [sign, before, behind, isLoud] = MARK_KINDS[mark.kind] ?? ["·", "", "", false];
			return {time: mark.at_ns, sign, words: before + cutText(safeText(mark.text), 300) + behind, isLoud};
		})
		.sort((/** @type {Mark} */ a, /** @type {Mark} */ b) => a.time - b.time);
}

export class Timeline {
	/** @param {App} app */
	constructor(app) {
		this.app = app;
		this.box = byId("timeline");
		this.canvas = make("canvas", {"aria-hidden": "true"});
		this.ground = make("canvas");
		this.tip = byId("tip");
		/** @type {(Mark & {x: number})[]} marks that are drawn or lie beside one */
		this.marks = [];
		/** @type {any[] | null} what the ground was drawn for */
		this.groundOf = null;
		this.box.replaceChildren(this.canvas);
		// Asking the document in each frame would lay it out twice.
		this.size = this.box.getBoundingClientRect();
		new ResizeObserver(() => {
			this.size = this.box.getBoundingClientRect();
			this.app.redrawTimeline();
		}).observe(this.box);
		/** @type {{mode: "window" | "begin" | "end" | "move" | "pan", from: number, x: number, begin: number, end: number, isMoved: boolean} | null} */
		this.drag = null;
		this.inkKey = "";
		this.plotWidth = 1;
		this.bottom = 0;
		this.most = 1;
		/** @type {Float64Array | null} */
		this.ink = null;
		this.listen();
	}

	listen() {
		const {box} = this;
		listen(box, {
			pointerdown: (event) => this.press(event),
			pointermove: (event) => this.move(event),
			pointerup: (event) => this.release(event),
			pointercancel: () => this.cancel(),
			pointerleave: () => {
				this.setCursor(-1);
				this.tip.hidden = true;
			},
			dblclick: () => this.app.store.set({selection: WHOLE_RUN, range: null}),
			keydown: (event) => this.key(event),
		});
		box.addEventListener(
			"wheel",
			(event) => {
				event.preventDefault();
				this.zoom(Math.max(ZOOM, Math.min(1 / ZOOM, 2 ** (event.deltaY / WHEEL_HALF))), this.timeAt(event));
			},
			{passive: false},
		);
	}

	get model() {
		return this.app.shown;
	}

	/** @returns {{from: number, to: number}} nanoseconds that are shown */
	get range() {
		const {bounds} = this.model.cells,
			{range} = this.app.store.state;
		return range ?? {from: bounds[0], to: bounds[this.model.last]};
	}

	/** @param {number} time @returns {number} pixels */
	xOf(time) {
		const {from, to} = this.range;
		return LEFT + ((time - from) / (to - from)) * this.plotWidth;
	}

	/** @param {number} bound @returns {number} */
	xOfBound(bound) {
		return this.xOf(this.model.cells.bounds[bound]);
	}

	/** @param {{clientX: number}} event @returns {number} nanoseconds */
	timeAt(event) {
		const {from, to} = this.range,
			x = event.clientX - this.box.getBoundingClientRect().left;
		return from + Math.min(1, Math.max(0, (x - LEFT) / this.plotWidth)) * (to - from);
	}

	/** @param {{clientX: number}} event @returns {number} the nearest bound */
	boundAt(event) {
		return nearestBound(this.model, this.timeAt(event));
	}

	/** @returns {[number, number] | null} times of the window */
	get window() {
		const {picture} = this.app,
			{choice} = picture;
		return choice.kind === "window" && !picture.isWhole
			? [picture.model.cells.bounds[choice.from], picture.model.cells.bounds[choice.to]]
			: null;
	}

	/** @param {PointerEvent} event */
	press(event) {
		if (event.button) return;
		this.box.setPointerCapture(event.pointerId);
		const box = this.box.getBoundingClientRect(),
			x = event.clientX - box.left,
			y = event.clientY - box.top,
			window = this.window,
			bound = this.boundAt(event);
		this.drag = {mode: "window", from: bound, x: event.clientX, begin: bound, end: bound, isMoved: false};
		this.isSecond = event.shiftKey;
		if (!window || event.shiftKey) return;
		const [begin, end] = window.map((time) => nearestBound(this.model, time)),
			[left, right] = window.map((time) => this.xOf(time));
		const mode =
			Math.abs(x - left) <= REACH
				? "begin"
				: Math.abs(x - right) <= REACH
					? "end"
					: y < TOP && Math.abs(x - (left + right) / 2) < 40
						? "move"
						: "window";
		if (mode !== "window") this.drag = {mode, from: bound, x: event.clientX, begin, end, isMoved: false};
	}

	/** @param {PointerEvent} event */
	move(event) {
		this.setCursor(this.boundAt(event));
		this.showMarks(event);
		const {drag} = this;
		if (!drag || (!drag.isMoved && Math.abs(event.clientX - drag.x) < CLICK_MAX)) return;
		if (!drag.isMoved && this.isSecond) markOther(this.app);
		drag.isMoved = true;
		this.app.store.isDragging = true;
		const [begin, end] = this.dragged(drag, this.boundAt(event));
		if (begin < end) this.select(begin, end, "none");
	}

	/** @param {NonNullable<Timeline["drag"]>} drag @param {number} bound @returns {[number, number]} bounds of the window */
	dragged(drag, bound) {
		if (drag.mode === "begin") return [Math.min(bound, drag.end - 1), drag.end];
		if (drag.mode === "end") return [drag.begin, Math.max(bound, drag.begin + 1)];
		if (drag.mode === "move") {
			const by = Math.max(-drag.begin, Math.min(bound - drag.from, this.model.last - drag.end));
			return [drag.begin + by, drag.end + by];
		}
		return [Math.min(drag.from, bound), Math.max(drag.from, bound)];
	}

	/** @param {number} begin @param {number} end bounds @param {"push" | "none"} step */
	select(begin, end, step) {
		const {bounds} = this.model.cells,
			{selection} = this.app.store.state;
		const classes = selection.kind === "window" && this.drag?.mode !== "window" ? selection.classes : AIFO;
		this.app.store.set({selection: {kind: "window", from: bounds[begin], to: this.endAt(end), classes}}, step);
	}

	/** @param {number} bound @returns {number} its time; the end of a recording goes on */
	endAt(bound) {
		const {app, model} = this;
		return app.trace.live && bound === model.last ? Infinity : model.cells.bounds[bound];
	}

	/** @param {PointerEvent} event */
	release(event) {
		const {drag} = this,
			{store} = this.app;
		if (!drag) return;
		if (drag.isMoved) {
			const [begin, end] = this.dragged(drag, this.boundAt(event));
			store.isDragging = false;
			if (begin < end) this.select(begin, end, "push");
			else this.app.redraw();
		} else {
			this.selectMoment(this.isOnPeak(event) ? this.model.cells.peak : this.boundAt(event));
		}
		this.drag = null;
	}

	cancel() {
		this.drag = null;
		this.app.store.isDragging = false;
	}

	/** @param {PointerEvent} event @returns {boolean} whether the pointer is on the peak's triangle */
	isOnPeak(event) {
		const {peak} = this.model.cells;
		return (
			peak >= 0 && Math.abs(event.clientX - this.box.getBoundingClientRect().left - this.xOfBound(peak)) <= REACH
		);
	}

	/** @param {number} bound */
	selectMoment(bound) {
		const {bounds, peak} = this.model.cells;
		this.app.store.set({selection: bound === peak ? {kind: "peak"} : {kind: "moment", at: bounds[bound]}});
	}

	/** @param {number} bound or -1 */
	setCursor(bound) {
		if (this.app.cursor === bound) return;
		this.app.cursor = bound;
		this.app.redrawTimeline();
	}

	/** @param {number} factor of the range @param {number} [around] a time; the middle of the selection */
	zoom(factor, around) {
		const {bounds} = this.app.whole.cells,
			{from, to} = this.range,
			first = bounds[0],
			last = bounds[this.app.whole.last];
		const middle = around ?? this.middle(),
			span = Math.max(this.app.whole.last, Math.round((to - from) * factor));
		if (span >= last - first) {
			this.app.store.set({range: null}, "replace");
			return;
		}
		const begin = Math.round(
			Math.min(Math.max(middle - ((middle - from) / (to - from)) * span, first), last - span),
		);
		this.app.store.set({range: {from: begin, to: begin + span}}, "replace");
	}

	/** @returns {number} the time in the middle of the selection */
	middle() {
		const {choice, model} = this.app.picture,
			{bounds} = model.cells;
		return choice.kind === "moment" ? bounds[choice.at] : (bounds[choice.from] + bounds[choice.to]) / 2;
	}

	/** @param {number} by bounds @param {boolean} isEndOnly whether only the end moves */
	shift(by, isEndOnly) {
		const {picture, store} = this.app,
			{choice, model} = picture,
			{bounds} = model.cells;
		if (choice.kind === "moment") {
			const at = Math.max(0, Math.min(model.last, choice.at + by)),
				times = [bounds[at], bounds[choice.at]];
			if (isEndOnly && at !== choice.at)
				store.set({selection: {kind: "window", from: Math.min(...times), to: Math.max(...times), classes: AIFO}});
			else store.set({selection: at === model.cells.peak ? {kind: "peak"} : {kind: "moment", at: bounds[at]}});
			return;
		}
		const to = Math.max(choice.from + 1, Math.min(model.last, choice.to + by));
		const from = isEndOnly
			? choice.from
			: Math.max(0, Math.min(choice.from + by, model.last - (choice.to - choice.from)));
		const end = isEndOnly ? to : from + (choice.to - choice.from);
		store.set({selection: {kind: "window", from: bounds[from], to: this.endAt(end), classes: choice.classes}});
	}

	/** @param {KeyboardEvent} event */
	key(event) {
		const by = /** @type {Record<string, number>} */ ({ArrowLeft: -1, ArrowRight: 1})[event.key];
		if (by) this.shift(by, event.shiftKey);
		else if (event.key === "Home") this.selectMoment(0);
		else if (event.key === "End") this.selectMoment(this.model.last);
		else return;
		event.preventDefault();
	}

	/** @returns {{live: Float64Array, series: Float64Array[], isFiltered: boolean}} sums that do not change while the pointer moves */
	curves() {
		const {by, filters} = this.app.store.state,
			{model} = this;
		return {
			live: cached(model, "live", () => liveCurve(model, null)),
			series: seriesCurves(model, by, filters),
			isFiltered: filters.length > 0,
		};
	}

	render() {
		const {width, height} = this.size;
		const {by, filters, range} = this.app.store.state,
			{palette} = this.app,
			about = [
				width,
				height,
				window.devicePixelRatio,
				this.model,
				palette,
				by,
				filters,
				range,
				currentInk(this.app)?.key,
				this.other && this.app.other?.model,
			];
		// What lies under the selection changes rarely: a drag draws it once.
		if (!this.groundOf || about.some((value, i) => value !== this.groundOf?.[i])) this.drawGround(width, height);
		this.groundOf = about;
		const context = prepareCanvas(this.canvas, width, height);
		context.drawImage(this.ground, 0, 0, width, height);
		context.font = FONT;
		this.drawSelection(context, width);
		this.describe();
	}

	/** @param {number} width @param {number} height */
	drawGround(width, height) {
		this.plotWidth = Math.max(1, width - LEFT - RIGHT);
		this.bottom = height - AXIS - LANE;
		const context = prepareCanvas(this.ground, width, height),
			curves = this.curves();
		const {model} = this,
			other = this.other && this.other.trace !== this.app.store.state.trace ? this.app.other : null,
			most = Math.max(
				largestOf(model.cells.maxBytes).value || 0,
				largestOf(curves.live).value,
				other ? largestOf(other.model.cells.maxBytes).value || 0 : 0,
				1,
			);
		const resident = model.cells.resident.reduce((max, value) => (value > max ? value : max), 0);
		this.isResidentOff = resident > most * RESIDENT_MAX;
		this.most = Math.max(most, this.isResidentOff ? 0 : resident) * 1.06;
		context.font = FONT;
		this.drawAxes(context, width);
		context.save();
		context.beginPath();
		context.rect(LEFT, 0, this.plotWidth, height);
		context.clip();
		this.drawAreas(context, curves);
		this.drawResident(context);
		this.drawLane(context);
		this.drawGaps(context);
		this.drawMarks(context);
		this.drawInk(context);
		context.restore();
	}

	/** @param {number} bytes @returns {number} pixels */
	yOf(bytes) {
		const bottom = this.bottom;
		return bottom - (bytes / this.most) * (bottom - TOP);
	}

	/** @param {Context2D} context @param {number} width */
	drawAxes(context, width) {
		const {palette} = this.app,
			{from, to} = this.range,
			bottom = this.bottom;
		const rise = axisStep(this.most, (bottom - TOP) / 30, true),
			step = axisStep(to - from, this.plotWidth / 110, false);
		context.textBaseline = "middle";
		context.textAlign = "right";
		for (let bytes = 0; bytes <= this.most; bytes += rise) {
			const y = Math.round(this.yOf(bytes)) + 0.5;
			context.fillStyle = palette.grid;
			context.fillRect(LEFT, y - 0.5, width - LEFT - RIGHT, 1);
			context.fillStyle = palette.ink3;
			context.fillText(bytes ? formatBytes(bytes).replace(".0", "") : "0", LEFT - 8, y);
		}
		context.fillText("calls", LEFT - 8, bottom + LANE / 2 + 4);
		context.textAlign = "center";
		for (let time = Math.ceil(Math.max(0, from) / step) * step; time <= to; time += step) {
			const x = this.xOf(time);
			context.fillStyle = palette.ink3;
			if (x < width - 20) context.fillText(formatTick(time, step), x, bottom + LANE + AXIS / 2 + 1);
		}
	}

	/** @param {Context2D} context @param {ArrayLike<number>} low @param {ArrayLike<number>} high @param {string} color */
	fillArea(context, low, high, color) {
		context.beginPath();
		for (let i = 0; i < high.length; i++) context.lineTo(this.xOfBound(i), this.yOf(high[i]));
		for (let i = high.length - 1; i >= 0; i--) context.lineTo(this.xOfBound(i), this.yOf(low[i]));
		context.fillStyle = color;
		context.fill();
		context.strokeStyle = this.app.palette.panel;
		context.lineWidth = 0.75;
		context.stroke();
	}

	/** @param {Context2D} context @param {ReturnType<Timeline["curves"]>} curves */
	drawAreas(context, curves) {
		const {palette} = this.app,
			isDim = currentInk(this.app) !== null,
			zero = new Float64Array(curves.live.length);
		if (curves.isFiltered) this.fillArea(context, zero, curves.live, mixColors(palette.others, palette.panel, 0.4));
		let low = zero;
		curves.series.forEach((curve, i) => {
			const high = low.map((value, at) => value + curve[at]);
			const color = palette.series[i] ?? palette.others;
			if (curve.some((value) => value > 0))
				this.fillArea(context, low, high, isDim ? mixColors(color, palette.panel, 0.38) : color);
			low = high;
		});
		context.beginPath();
		this.model.cells.maxBytes.forEach((value, i) => {
			context.lineTo(this.xOfBound(i), this.yOf(value));
			context.lineTo(this.xOfBound(i + 1), this.yOf(value));
		});
		context.strokeStyle = palette.ink3;
		context.lineWidth = 0.6;
		context.stroke();
	}

	/** @param {Context2D} context */
	drawResident(context) {
		if (this.isResidentOff) return;
		context.beginPath();
		residentCurve(this.model).forEach((value, i) => {
			if (Number.isNaN(value)) return;
			context.lineTo(this.xOfBound(i), this.yOf(value));
			context.lineTo(this.xOfBound(i + 1), this.yOf(value));
		});
		context.setLineDash([4, 3]);
		context.strokeStyle = this.app.palette.ink2;
		context.lineWidth = 1.2;
		context.stroke();
		context.setLineDash([]);
	}

	/** Calls in each interval, on a square root's scale. @param {Context2D} context */
	drawLane(context) {
		const {calls, bounds} = this.model.cells,
			{palette} = this.app,
			base = this.bottom + LANE;
		const rates = calls.map((value, i) => value / (bounds[i + 1] - bounds[i])),
			most = largestOf(rates).value || 1;
		context.fillStyle = mixColors(palette.ink3, palette.panel, 0.55);
		rates.forEach((rate, i) => {
			const x = this.xOfBound(i),
				height = rate ? Math.max(1, Math.sqrt(rate / most) * (LANE - 8)) : 0;
			context.fillRect(x, base - height, Math.max(0.6, this.xOfBound(i + 1) - x - 0.7), height);
		});
	}

	/** Marks of the trace. Of several at one place, the first one is drawn; what is missing from the trace comes before processes. @param {Context2D} context */
	drawMarks(context) {
		const {palette} = this.app,
			marks = marksOf(this.app.trace);
		let right = -Infinity;
		this.marks = marks
			.map((mark) => ({...mark, x: this.xOf(mark.time)}))
			.filter(({x}) => x >= LEFT - 1 && x <= LEFT + this.plotWidth + 1);
		context.textAlign = "center";
		for (const isLoud of [true, false]) {
			const taken = isLoud ? [] : this.marks.filter((mark) => mark.isLoud).map(({x}) => x);
			right = -Infinity;
			for (const mark of this.marks) {
				if (
					mark.isLoud !== isLoud ||
					mark.x - right < MARK_WIDTH ||
					taken.some((x) => Math.abs(x - mark.x) < MARK_WIDTH)
				)
					continue;
				context.fillStyle = isLoud ? palette.more : palette.ink2;
				context.fillText(
					mark.sign,
					Math.max(LEFT + 4, Math.min(mark.x, LEFT + this.plotWidth - 4)),
					this.bottom + MARK_Y,
				);
				right = mark.x;
			}
		}
	}

	/** Explains the marks under the pointer. @param {PointerEvent} event */
	showMarks(event) {
		const box = this.box.getBoundingClientRect(),
			x = event.clientX - box.left,
			y = event.clientY - box.top;
		const near =
			Math.abs(y - this.bottom - MARK_Y) <= REACH && !this.drag
				? this.marks.filter((mark) => Math.abs(mark.x - x) <= MARK_WIDTH)
				: [];
		this.tip.hidden = !near.length;
		if (!near.length) return;
		fill(
			this.tip,
			...near
				.slice(0, MARKS_TOLD)
				.map((mark) => make("div", `${mark.sign} ${formatTime(mark.time)}  `, name(mark.words))),
			near.length > MARKS_TOLD && make("div.faint", `${near.length - MARKS_TOLD} more`),
		);
		placeTip(this.tip, event);
	}

	/** @param {Context2D} context */
	drawGaps(context) {
		const {palette} = this.app;
		for (const gap of this.app.trace.gaps ?? []) {
			const left = this.xOf(gap.from_ns),
				right = Math.max(left + 2, this.xOf(gap.to_ns)),
				bottom = this.bottom + LANE;
			context.save();
			context.beginPath();
			context.rect(left, TOP, right - left, bottom - TOP);
			context.clip();
			context.beginPath();
			for (let x = left - (bottom - TOP); x < right; x += 6) {
				context.moveTo(x, bottom);
				context.lineTo(x + bottom - TOP, TOP);
			}
			context.strokeStyle = palette.more;
			context.globalAlpha = 0.45;
			context.lineWidth = 1;
			context.stroke();
			context.restore();
		}
	}

	/** @param {Context2D} context */
	drawInk(context) {
		const ink = currentInk(this.app),
			{palette} = this.app;
		const key = ink ? `${ink.key} ${JSON.stringify(this.app.store.state.filters)}` : "";
		if (key !== this.inkKey || this.inkModel !== this.model) {
			this.ink = ink && inkCurve(this.app, ink);
			this.inkKey = key;
			this.inkModel = this.model;
		}
		if (!this.ink) return;
		context.beginPath();
		this.ink.forEach((value, i) => context.lineTo(this.xOfBound(i), this.yOf(value)));
		context.strokeStyle = palette.ink;
		context.lineWidth = 1.8;
		context.stroke();
	}

	/** @param {Context2D} context @param {number} width */
	drawSelection(context, width) {
		const {palette, cursor} = this.app,
			window = this.window,
			{peak, maxBytes} = this.model.cells,
			bottom = this.bottom + LANE;
		const isMoment = this.app.picture.choice.kind === "moment";
		if (cursor >= 0 && !this.drag?.isMoved) {
			context.fillStyle = palette.ink3;
			context.fillRect(this.xOfBound(cursor) - 0.5, TOP, 1, bottom - TOP);
		}
		this.drawOther(context, bottom);
		if (window) this.drawWindow(context, window, bottom);
		else if (isMoment) this.drawMoment(context, bottom, width);
		if (peak >= 0 && !(isMoment && this.app.picture.isPeak))
			this.drawPeak(context, this.xOfBound(peak), largestOf(maxBytes).value, width);
	}

	/** @returns {Other | null} what the selection is compared with, if that is shown */
	get other() {
		return this.app.store.state.view === "compare" ? this.app.otherOf() : null;
	}

	/** What the selection is compared with: its place, or the live bytes of the other trace. @param {Context2D} context @param {number} bottom */
	drawOther(context, bottom) {
		const {other} = this,
			{palette, store, whole} = this.app,
			model = this.app.other?.model;
		if (!other) return;
		context.fillStyle = context.strokeStyle = palette.ink2;
		context.save();
		context.beginPath();
		context.rect(LEFT - 1, 0, this.plotWidth + 2, bottom);
		context.clip();
		if (other.trace !== store.state.trace && model) {
			context.beginPath();
			cached(model, "live", () => liveCurve(model, null)).forEach((bytes, i) =>
				context.lineTo(this.xOf(model.cells.bounds[i]), this.yOf(bytes)),
			);
			context.lineWidth = 1.4;
			context.stroke();
		} else if (other.trace === store.state.trace) {
			const {selection} = other,
				{bounds, peak} = whole.cells,
				times =
					selection.kind === "window"
						? [Math.max(selection.from, bounds[0]), Math.min(selection.to, bounds[whole.last])]
						: [selection.kind === "peak" ? bounds[peak] : selection.at],
				places = times.map((time) => this.xOf(time));
			for (const x of places) context.fillRect(x - 0.75, TOP - 4, 1.5, bottom - TOP + 4);
			if (places.length > 1) context.fillRect(places[0], TOP - 4, places[1] - places[0], 2);
			context.textAlign = "left";
			context.fillText(other.isB ? "B" : "A", places[0] + 4, TOP + 8);
		}
		context.restore();
	}

	/** @param {Context2D} context @param {number} x @param {number} bytes @param {number} width */
	drawPeak(context, x, bytes, width) {
		const {palette} = this.app,
			y = this.yOf(bytes),
			text = `peak ${formatBytes(bytes)}`;
		context.fillStyle = palette.ink;
		context.beginPath();
		context.moveTo(x - 5, y - 10);
		context.lineTo(x + 5, y - 10);
		context.lineTo(x, y - 3);
		context.fill();
		const room = context.measureText(text).width + 9,
			{choice, model} = this.app.picture,
			times = this.window ?? [model.cells.bounds[/** @type {any} */ (choice).at]],
			isCut = times.some((time) => this.xOf(time) > x && this.xOf(time) < x + room),
			isRight = x > width - 110 || (isCut && x > LEFT + room);
		context.textAlign = isRight ? "right" : "left";
		context.fillStyle = palette.ink2;
		context.fillText(text, x + (isRight ? -9 : 9), Math.max(8, y - 8));
	}

	/** @param {Context2D} context @param {[number, number]} window times @param {number} bottom */
	drawWindow(context, window, bottom) {
		const {palette} = this.app,
			[left, right] = window.map((time) => Math.max(LEFT, Math.min(this.xOf(time), LEFT + this.plotWidth)));
		context.globalAlpha = 0.62;
		context.fillStyle = palette.panel;
		context.fillRect(LEFT, TOP, left - LEFT, bottom - TOP);
		context.fillRect(right, TOP, LEFT + this.plotWidth - right, bottom - TOP);
		context.globalAlpha = 1;
		context.fillStyle = palette.accent;
		for (const x of [left, right]) {
			context.fillRect(x - 0.75, TOP, 1.5, bottom - TOP);
			context.beginPath();
			context.roundRect(x - HANDLE_WIDTH / 2, (TOP + bottom - HANDLE_HEIGHT) / 2, HANDLE_WIDTH, HANDLE_HEIGHT, 3);
			context.fill();
		}
		this.drawLabel(context, (left + right) / 2, formatTime(window[1] - Math.max(0, window[0])));
	}

	/** @param {Context2D} context @param {number} bottom @param {number} width */
	drawMoment(context, bottom, width) {
		const {picture} = this.app,
			{choice, model} = picture;
		if (choice.kind !== "moment") return;
		const time = model.cells.bounds[choice.at],
			x = this.xOf(time);
		if (x < LEFT - 1 || x > width - RIGHT + 1) return;
		context.fillStyle = this.app.palette.accent;
		context.fillRect(x - 0.75, TOP - 4, 1.5, bottom - TOP + 4);
		this.drawLabel(context, x, `${picture.isPeak ? "peak " : ""}${formatTime(time)}`);
	}

	/** @param {Context2D} context @param {number} x @param {string} text */
	drawLabel(context, x, text) {
		if (this.other) text = `${this.other.isB ? "A" : "B"} ${text}`;
		const width = context.measureText(text).width + 14,
			right = LEFT + this.plotWidth + RIGHT;
		const left = Math.max(LEFT, Math.min(x - width / 2, right - width));
		context.fillStyle = this.app.palette.accent;
		context.beginPath();
		context.roundRect(left, 3, width, 18, 4);
		context.fill();
		context.fillStyle = this.app.palette.panel;
		context.textAlign = "center";
		context.fillText(fitText(context, text, width), left + width / 2, 12.5);
	}

	/** Says the numbers in words. */
	describe() {
		const {picture} = this.app,
			{choice, model} = picture,
			about = {
				min: 0,
				max: model.last,
				now: choice.kind === "moment" ? choice.at : choice.to,
				text: describe(picture),
			};
		for (const [name, value] of Object.entries(about)) this.box.setAttribute(`aria-value${name}`, String(value));
	}
}
