// SPDX-License-Identifier: MIT
// Through which calls: frames on a canvas. tree.js has the layout.
import {formatMeasure, formatShare, formatWhole} from "./format.js";
import {byId, fill, fitText, FONT_FAMILY, listen, make, name, placeTip, prepareCanvas, textWidth} from "./elements.js";
import {cutText, DRAWN_MAX, safeText} from "./hostile.js";
import {cellsOnPath, layoutFlame} from "./tree.js";
import {frameColors} from "./palette.js";
import {selectionMark, sumOf} from "./picture.js";
import {MARK_WORD} from "./decode.js";
import {cached, chosenBits, findGroup} from "./cells.js";

/** Pixels. */
const FRAME_ROW = 24,
	FRAME = 22,
	EDGE = 2.5,
	EDGE_MIN = 14,
	VALUE_MIN = 170,
	VALUE_TRY = 80,
	PAD = 8,
	TEXT_MIN = 24;
const FRAME_FONT = `12px ${FONT_FAMILY}`;
const FRAME_FONT_STRONG = `500 ${FRAME_FONT}`;
/** Places of the frames around one, by key. */
const STEPS = /** @type {Record<string, [number, number]>} */ ({
	ArrowUp: [-1, 0],
	ArrowDown: [1, 0],
	ArrowLeft: [0, -1],
	ArrowRight: [0, 1],
});

export class Flame {
	/** @param {App} app @param {string} [id] of its box */
	constructor(app, id = "flame") {
		this.app = app;
		this.box = byId(id);
		this.canvas = make("canvas", {"aria-hidden": "true"});
		this.spacer = make("div.flame-spacer");
		this.tip = byId("tip");
		this.box.replaceChildren(this.canvas, this.spacer);
		/** @type {{frames: Placed[], total: number, rows: number, focusNode: number}} */
		this.layout = {frames: [], total: 0, rows: 0, focusNode: -1};
		/** @type {Map<number, number>} places of frames that a drag keeps, by key */
		this.settled = new Map();
		this.hovered = -1;
		this.drawMs = 0;
		this.listen();
	}

	/** @returns {Picture} what is shown */
	get picture() {
		return this.app.detail;
	}

	/** @param {Placed} _frame @returns {number} by how much of its larger side it changed, if two are compared */
	changeOf(_frame) {
		return NaN;
	}

	/** @param {Placed} frame @returns {Child[]} what the tooltip says of it */
	tellValue(frame) {
		const {measure} = this.app.store.state;
		return [
			make("div", make("b", this.valueOf(frame)), ` · ${formatShare(frame.value / this.layout.total)}`),
			frame.self > 0 && frame.self < frame.value
				? make("div", `${formatMeasure(frame.self, measure)} of it by this frame itself`)
				: null,
		];
	}

	/** @param {string} path @returns {(model: Model) => Uint8Array} its cells */
	inkMask(path) {
		const {state} = this.app.store;
		return (model) => cellsOnPath(model, path, state);
	}

	listen() {
		const {box} = this;
		listen(box, {
			scroll: () => this.draw(),
			pointermove: (event) => this.hover(this.frameAt(event), event),
			pointerleave: () => this.hover(-1),
			click: (event) => this.choose(this.frameAt(event)),
			dblclick: (event) => this.focus(this.frameAt(event)),
			keydown: (event) => this.key(event),
		});
	}

	/** @returns {FlameQuestion} */
	question() {
		const {picture} = this,
			{store} = this.app,
			{state} = store;
		const title =
			picture.title +
			(state.measure === "peak"
				? ", as far as it lives at the peak"
				: state.measure === "temporaries"
					? ", temporary blocks"
					: "");
		return {
			hits: picture.selected.hits,
			selected: picture.selected,
			total: picture === this.app.picture ? undefined : sumOf(this.app.picture, state.measure),
			classes: chosenBits(picture.choice),
			measure: state.measure,
			by: state.by,
			isFolded: state.isFolded,
			isInverted: state.isInverted,
			isMerged: state.isMerged,
			width: this.box.clientWidth - 1,
			opened: new Set(state.opened),
			focus: state.focus,
			order: store.isDragging || this.app.isGoingOn ? this.settled : null,
			title,
		};
	}

	render() {
		const {picture} = this,
			{store} = this.app;
		this.layout = layoutFlame(picture.model, this.question());
		if (!store.isDragging) this.settled.clear();
		// Frames that come in a drag stay behind the others.
		for (const {key, x} of this.layout.frames)
			this.settled.set(key, this.settled.get(key) ?? (store.isDragging ? 1e6 + this.settled.size : x));
		this.spacer.style.height = `${this.layout.rows * FRAME_ROW + 4}px`;
		byId("nothing").hidden = this.layout.total > 0;
		this.draw();
		this.describe();
	}

	describe() {
		const largest = this.layout.frames
			.filter((frame) => frame.kind === "frame" && frame.frame >= 0)
			.sort((a, b) => b.self - a.self)
			.slice(0, 3);
		const words = largest
			.map((frame) => `${cutText(frame.name, 60)} ${formatMeasure(frame.self, this.app.store.state.measure)}`)
			.join(", ");
		this.box.setAttribute(
			"aria-label",
			`Flame view of ${this.picture.title}: ${formatMeasure(this.layout.total, this.app.store.state.measure)}. Largest: ${words || "nothing"}. The table has the same.`,
		);
	}

	draw() {
		const begin = performance.now(),
			{box} = this,
			{clientWidth: width, clientHeight: height, scrollTop} = box;
		const context = prepareCanvas(this.canvas, width, height);
		context.textBaseline = "middle";
		const first = Math.floor(scrollTop / FRAME_ROW),
			last = Math.ceil((scrollTop + height) / FRAME_ROW);
		this.layout.frames.forEach((frame, i) => {
			if (frame.depth >= first && frame.depth <= last)
				this.drawFrame(context, frame, frame.depth * FRAME_ROW - scrollTop, i);
		});
		this.drawMs = performance.now() - begin;
	}

	/** @param {Placed} frame @returns {boolean} whether a search hits it */
	isHit(frame) {
		const {hitFrames} = this.picture;
		if (!hitFrames) return false;
		return frame.kind === "chain"
			? frame.run.some((member) => hitFrames[member] === 1)
			: frame.frame >= 0 && frame.kind === "frame" && hitFrames[frame.frame] === 1;
	}

	/** @param {Placed} frame @returns {"plain" | "pale" | "dim" | "hit"} */
	styleOf(frame) {
		if (this.isHit(frame)) return "hit";
		if (this.picture.hitFrames) return "dim";
		return frame.kind === "chain" || frame.kind === "small" ? "pale" : "plain";
	}

	/** @param {Context2D} context @param {Placed} frame @param {number} y @param {number} index */
	drawFrame(context, frame, y, index) {
		const {app} = this,
			style = this.styleOf(frame),
			colors = frameColors(app.palette, frame.series, style, this.changeOf(frame));
		const width = Math.max(1, frame.width - (frame.width > 6 ? 1 : 0.5)),
			isEdged = frame.width > EDGE_MIN && colors.edge !== colors.ground;
		context.fillStyle = colors.ground;
		context.fillRect(frame.x, y, width, FRAME - 2);
		if (isEdged) {
			context.fillStyle = colors.edge;
			context.fillRect(frame.x, y, EDGE, FRAME - 2);
		}
		if (frame.width > TEXT_MIN) this.drawText(context, frame, y + FRAME / 2 - 0.5, width, colors);
		const isSelected = this.isChosen(frame);
		if (isSelected || index === this.hovered) {
			context.strokeStyle = isSelected ? app.palette.accent : app.palette.ink3;
			context.lineWidth = isSelected ? 2 : 1;
			context.strokeRect(frame.x + 1, y + 1, width - 2, FRAME - 4);
		}
	}

	/** @param {Context2D} context @param {Placed} frame @param {number} y @param {number} width @param {{text: string, value: string}} colors */
	drawText(context, frame, y, width, colors) {
		let room = width - 2 * PAD;
		context.font = frame.kind === "chain" || frame.kind === "small" ? FRAME_FONT : FRAME_FONT_STRONG;
		const words =
			frame.kind === "chain"
				? `≡ ${cutText(frame.name, DRAWN_MAX)}   ${frame.count} frames`
				: cutText(frame.name, DRAWN_MAX);
		if (width > VALUE_TRY) {
			const value = this.valueOf(frame),
				rest = room - textWidth(context, value) - PAD;
			if (width > VALUE_MIN || textWidth(context, words) <= rest) {
				context.textAlign = "right";
				context.fillStyle = colors.value;
				context.fillText(value, frame.x + width - PAD, y);
				room = rest;
			}
		}
		context.textAlign = "left";
		context.fillStyle = colors.text;
		const text = fitText(context, words, room);
		if (text) context.fillText(text, frame.x + PAD, y);
	}

	/** @param {Placed} frame @returns {string} the mark before its value: stacks beside it may be lumped, so that it may have more */
	markOf(frame) {
		const {picture} = this,
			{store} = this.app,
			{cells} = picture.model;
		const isLess =
			cells.lumpedStacks > 0 &&
			this.isReal(frame) &&
			(store.state.isInverted
				? frame.depth > 1
				: frame.node >= 0 && besideLumps(picture.model)[frame.node] === 1);
		return isLess ? "≥\u2009" : selectionMark(picture);
	}

	/** @param {Placed} frame @returns {string} */
	valueOf(frame) {
		return this.markOf(frame) + formatMeasure(frame.value, this.app.store.state.measure);
	}

	/** @param {MouseEvent} event @returns {number} index of a frame, or -1 */
	frameAt(event) {
		const box = this.box.getBoundingClientRect(),
			x = event.clientX - box.left,
			row = Math.floor((event.clientY - box.top + this.box.scrollTop) / FRAME_ROW);
		return this.layout.frames.findIndex(
			(frame) => frame.depth === row && x >= frame.x && x < frame.x + frame.width,
		);
	}

	/** @param {number} index @param {MouseEvent} [event] */
	hover(index, event) {
		const frame = this.layout.frames[index],
			isNew = index !== this.hovered;
		this.hovered = index;
		if (isNew) {
			this.draw();
			const {state} = this.app.store;
			this.app.hover(
				frame && this.isReal(frame)
					? {
							key: `frame ${frame.path} ${state.by}${state.isInverted}${state.isMerged}${state.isFolded}`,
							mask: this.inkMask(frame.path),
							model: this.picture.model,
						}
					: null,
			);
		}
		if (frame && event && frame.kind !== "root") this.showTip(frame, event);
		else this.tip.hidden = true;
	}

	/** @param {Placed} frame @returns {boolean} whether it stands for calls */
	isReal(frame) {
		return frame.kind === "frame" || frame.kind === "chain" || frame.kind === "group";
	}

	/** @param {Placed} frame @returns {boolean} whether it is selected, or calls of what is */
	isChosen(frame) {
		const {item} = this.app.store.state;
		if (!item || !this.isReal(frame)) return false;
		if (item.kind === "path") return item.path === frame.path;
		const {model} = this.picture;
		if (item.by === "stack") return frame.node >= 0 && frame.node === findGroup(model, "stack", item.key);
		return frame.kind === "frame" && model.cells.frames[frame.frame]?.key === item.key;
	}

	/** @param {Placed} frame @param {MouseEvent} event */
	showTip(frame, event) {
		const {app, tip} = this,
			{cells} = this.picture.model,
			row = frame.frame >= 0 ? cells.frames[frame.frame] : null;
		const line =
			frame.node >= 0 && cells.line[frame.node] && frame.kind === "frame" && !app.store.state.isInverted
				? `:${cells.line[frame.node]}`
				: "";
		const place =
			row && (row.marks & MARK_WORD ? "" : [row.image, row.file && row.file + line].filter(Boolean).join(" · "));
		const lumped = frame.node >= 0 ? cells.stacks[frame.node] : 0;
		fill(
			tip,
			make("div.tip-name", name(cutText(row && frame.kind === "frame" ? row.full : frame.name, 600))),
			place ? make("div.tip-place", name(cutText(place, 300))) : null,
			...this.tellValue(frame),
			frame.kind === "chain"
				? make("div.tip-place", `${frame.count} frames, each with one callee. Click opens them.`)
				: null,
			frame.kind === "small" && frame.width > 0
				? make("div.tip-place", "Focus on the frame above to see them.")
				: null,
			lumped
				? make("div.tip-place", `${formatWhole(lumped)} stacks that are too light to be sent one by one`)
				: null,
		);
		placeTip(tip, event);
	}

	/** @param {number} index */
	choose(index) {
		const frame = this.layout.frames[index],
			{store} = this.app;
		if (!frame) return;
		if (frame.kind === "root" || (frame.kind === "small" && frame.key === 1)) {
			if (store.state.focus || store.state.item) store.set({focus: "", item: null});
		} else if (frame.kind === "chain") {
			store.set({opened: [...store.state.opened, frame.key]});
		} else if (frame.kind !== "small") {
			store.set({item: {kind: "path", path: frame.path}});
		}
	}

	/** @param {number} index */
	focus(index) {
		const frame = this.layout.frames[index];
		if (frame && this.isReal(frame)) this.app.store.set({focus: frame.path, item: null});
	}

	/** @returns {number} the frame that keys act on */
	current() {
		const selected = this.layout.frames.findIndex((frame) => this.isChosen(frame));
		return this.hovered >= 0 && this.layout.frames[this.hovered] ? this.hovered : Math.max(0, selected);
	}

	/** @param {KeyboardEvent} event */
	key(event) {
		const at = this.current();
		if (STEPS[event.key]) this.hoverByKey(this.neighbour(at, ...STEPS[event.key]));
		else if (event.key === "Enter") this.layout.frames[at]?.kind === "chain" ? this.choose(at) : this.focus(at);
		else if (event.key === " ") this.choose(at);
		else if (event.key === "Backspace")
			this.app.store.set({focus: this.app.store.state.focus.split(".").slice(0, -1).join(".")});
		else return;
		event.preventDefault();
	}

	/** @param {number} at @param {number} down @param {number} right @returns {number} the frame above, below or beside one */
	neighbour(at, down, right) {
		const {frames} = this.layout,
			frame = frames[at];
		if (down < 0) return Math.max(0, frame.parent);
		if (down > 0)
			return frames.reduce(
				(best, child, i) =>
					child.parent === at && (best === at || child.value > frames[best].value) ? i : best,
				at,
			);
		const row = frames
			.map((_, i) => i)
			.filter((i) => frames[i].depth === frame.depth)
			.sort((a, b) => frames[a].x - frames[b].x);
		return row[row.indexOf(at) + right] ?? at;
	}

	/** @param {number} index */
	hoverByKey(index) {
		const frame = this.layout.frames[index],
			top = frame.depth * FRAME_ROW;
		if (top < this.box.scrollTop) this.box.scrollTop = top;
		if (top + FRAME_ROW > this.box.scrollTop + this.box.clientHeight)
			this.box.scrollTop = top + FRAME_ROW - this.box.clientHeight;
		this.hover(index);
		this.app.say(
			`${safeText(cutText(frame.name, 100))}, ${formatMeasure(frame.value, this.app.store.state.measure)}, ${formatShare(frame.value / this.layout.total)}`,
		);
	}
}

/** @param {Model} model @returns {Uint8Array} for each node: whether a lumped node stands beside it or beside one of its callers */
function besideLumps(model) {
	return cached(model, "beside lumps", () => {
		const {parent, stacks, nodeCount, frames, frame} = model.cells,
			found = new Uint8Array(nodeCount);
		const isLump = (/** @type {number} */ node) =>
			stacks[node] > 0 && (frames[frame[node]].marks & MARK_WORD) !== 0;
		const lumpsBelow = new Uint8Array(nodeCount + 1);
		for (let node = 0; node < nodeCount; node++) if (isLump(node)) lumpsBelow[parent[node] + 1] = 1;
		for (let node = 0; node < nodeCount; node++)
			found[node] = Number(
				!isLump(node) &&
					(lumpsBelow[parent[node] + 1] === 1 || (parent[node] >= 0 && found[parent[node]] === 1)),
			);
		return found;
	});
}
