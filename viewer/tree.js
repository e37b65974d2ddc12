// SPDX-License-Identifier: MIT
// The layout of the flame view: sums over cells become frames with a place. Pure: nothing here knows the document.
//
// A tree of calls is made once for a model: the nodes of cells, where callees of one name are one, or also recursive calls. A branch of the
// layout is a node of this tree with the sums of the selection, or, inverted, a set of stacks with equal innermost frames. Branches divide only
// while they are wide enough to be seen.
import {addBelow, cached, cellWeights, findSeries, groupCells, groupName, orderCells, SERIES_MAX} from "./cells.js";
/** @import {Grouping, Measure, Model} from "./cells.js" */

/** Narrower frames are merged to one block. Pixels. */
const WIDTH_MIN = 2.5;
/** A run of so many frames is a chain. */
const CHAIN_MIN = 4;
/** The single child of a frame of a chain has at least this share, and no other is wider than so many pixels. */
const CHAIN_SHARE = 0.98,
	CHAIN_OTHER_MAX = 20;
/** The colour of a frame is that of the series with more than this share. */
const SERIES_SHARE = 0.5;
const COLORS = SERIES_MAX + 1;

/**
 * @typedef {object} CallTree
 * @property {Int32Array} parent @property {Uint32Array} frame @property {Uint32Array} ofNode the node of this tree for each node of the cells
 * @property {Uint32Array} source a node of the cells for each one of this tree
 * @property {Uint32Array} begins of each node's children in `children`; those of the root come last @property {Uint32Array} children
 *
 * @typedef {object} Branch
 * @property {number} frame index of frames; -1 a group or the root @property {number} value @property {number} self
 * @property {Float64Array | null} colors sums by series; null: one colour
 * @property {number} node of the call tree, or of the cells if inverted @property {() => Branch[]} divide its children, in any order
 *
 * @typedef {{branch: Branch, placed: Placed}[]} Sorted
 *
 * @typedef {object} Placed a frame with its place
 * @property {"root" | "group" | "frame" | "chain" | "small"} kind
 * @property {number} key the same for the same path in another layout @property {number} parent index in the layout, or -1
 * @property {number} depth row @property {number} x @property {number} width in pixels
 * @property {number} value @property {number} self @property {number} frame index of frames, or -1
 * @property {number[]} run frames of a chain, outermost first
 * @property {number} count frames of a chain, or blocks that were merged
 * @property {number} series index of the colour, or -1 for grey @property {number} node of the cells, or -1 @property {string} name
 * @property {string} path for the address
 *
 * @typedef {object} FlameQuestion
 * @property {Uint8Array} hits @property {Measure} measure @property {Grouping} by of the timeline
 * @property {boolean} isFolded @property {boolean} isInverted @property {boolean} isMerged recursive calls are one
 * @property {number} width @property {Set<number>} opened keys of chains @property {string} focus a path, or empty
 * @property {Map<number, number> | null} order places of keys while dragging, or null to sort by value @property {string} title
 */

/** @param {number} key @param {number} hash @returns {number} of a path with one more frame */
function extendKey(key, hash) {
	const high = Math.imul((key / 0x4000000) ^ hash, 0x9e3779b1) >>> 6,
		low = Math.imul((key % 0x4000000) + hash, 0x85ebca6b) >>> 6;
	return high * 0x4000000 + low;
}

/** @param {string} text @returns {number} 32 bits */
export function hashText(text) {
	let hash = 0x811c9dc5;
	for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
	return hash >>> 0;
}

/** @param {Model} model @returns {Uint32Array} for each function, equal in other cells of the trace */
function frameHashes(model) {
	return cached(model, "hashes", () => Uint32Array.from(model.cells.frames, (frame) => hashText(frame.key)));
}

/**
 * @param {Int32Array} parent
 * @param {Uint32Array} frame
 * @param {number} from
 * @param {number} wanted
 * @returns {number} the node above or at `from` with this frame, or -1
 */
function findAbove(parent, frame, from, wanted) {
	let at = from;
	while (at >= 0 && frame[at] !== wanted) at = parent[at];
	return at;
}

/** @param {Int32Array} parent @param {number} count @returns {{begins: Uint32Array, children: Uint32Array}} */
function listChildren(parent, count) {
	const begins = new Uint32Array(count + 2),
		place = (/** @type {number} */ i) => (parent[i] < 0 ? count : parent[i]);
	for (let i = 0; i < count; i++) begins[place(i) + 1]++;
	for (let i = 0; i <= count; i++) begins[i + 1] += begins[i];
	const next = begins.slice(),
		children = new Uint32Array(count);
	for (let i = 0; i < count; i++) children[next[place(i)]++] = i;
	return {begins, children};
}

/** @param {Model} model @param {boolean} isMerged @returns {CallTree} */
export function callTree(model, isMerged) {
	return cached(model, `calls ${isMerged}`, () => {
		const {nodeCount, parent: callers, frame: frames} = model.cells;
		const parent = new Int32Array(nodeCount),
			frame = new Uint32Array(nodeCount),
			ofNode = new Uint32Array(nodeCount),
			source = new Uint32Array(nodeCount);
		const found = new Map();
		let count = 0;
		for (let node = 0; node < nodeCount; node++) {
			const caller = callers[node] < 0 ? -1 : ofNode[callers[node]];
			const same = isMerged ? findAbove(parent, frame, caller, frames[node]) : -1;
			const name = (caller + 1) * model.cells.frames.length + frames[node];
			const known = same >= 0 ? same : (found.get(name) ?? -1);
			if (known < 0) {
				found.set(name, count);
				parent[count] = caller;
				frame[count] = frames[node];
				source[count] = node;
			}
			ofNode[node] = known < 0 ? count++ : known;
		}
		return {
			parent: parent.slice(0, count),
			frame: frame.slice(0, count),
			source,
			ofNode,
			...listChildren(parent, count),
		};
	});
}

/**
 * @param {Model} model
 * @param {FlameQuestion} question
 * @returns {{nodeOf: (i: number) => number, colorOf: ((i: number) => number) | null}} of cells
 */
function readersOf(model, question) {
	const {node, asker} = model.cells;
	const isSplit = question.by === "process" || question.by === "thread";
	const {keys} = groupCells(model, question.by),
		{ofGroup} = findSeries(model, question.by);
	return {
		nodeOf: question.isFolded ? (i) => asker[node[i]] : (i) => node[i],
		colorOf: isSplit ? null : (i) => ofGroup[keys[i]],
	};
}

/**
 * Branches from the threads' starts.
 * @param {Model} model @param {FlameQuestion} question @param {Uint32Array} indexes of cells @returns {Branch[]}
 */
function divideFromRoot(model, question, indexes) {
	const tree = callTree(model, question.isMerged),
		count = tree.parent.length,
		weights = cellWeights(model, question.measure);
	const {nodeOf, colorOf} = readersOf(model, question);
	// One layout needs the sums of one group at a time.
	const {
		self,
		value,
		colors: allColors,
	} = cached(model, `scratch ${question.isMerged}`, () => ({
		self: new Float64Array(count),
		value: new Float64Array(count),
		colors: new Float64Array(count * COLORS),
	}));
	const colors = colorOf ? allColors.fill(0) : null,
		{hits} = question;
	self.fill(0);
	for (let place = 0; place < indexes.length; place++) {
		const i = indexes[place];
		if (!hits[i]) continue;
		const at = tree.ofNode[nodeOf(i)];
		self[at] += weights[i];
		if (colors && colorOf) colors[at * COLORS + colorOf(i)] += weights[i];
	}
	value.set(self);
	for (let at = count - 1; at >= 0; at--) {
		const parent = tree.parent[at];
		if (parent < 0 || !value[at]) continue;
		value[parent] += value[at];
		if (colors)
			for (let color = 0; color < COLORS; color++) colors[parent * COLORS + color] += colors[at * COLORS + color];
	}
	/** @param {number} at @returns {Branch[]} */
	const divide = (at) => {
		const branches = [];
		for (let child = tree.begins[at]; child < tree.begins[at + 1]; child++) {
			const node = tree.children[child];
			if (!value[node]) continue;
			branches.push({
				frame: tree.frame[node],
				value: value[node],
				self: self[node],
				node: tree.source[node],
				divide: () => divide(node),
				colors: colors && colors.subarray(node * COLORS, (node + 1) * COLORS),
			});
		}
		return branches;
	};
	return divide(count);
}

/**
 * @typedef {{at: number, origin: number, value: number, color: number}} Rest of a stack: `at` is its next frame, -1
 * none
 */

/**
 * Branches from the function that asked.
 * @param {Model} model @param {FlameQuestion} question @param {Uint32Array} indexes of cells @returns {Branch[]}
 */
function divideInverted(model, question, indexes) {
	const {parent, frame} = model.cells,
		weights = cellWeights(model, question.measure),
		{nodeOf, colorOf} = readersOf(model, question);
	/** @type {Map<number, Rest>} */
	const rests = new Map();
	for (let place = 0; place < indexes.length; place++) {
		const i = indexes[place];
		if (!question.hits[i] || !weights[i]) continue;
		const at = nodeOf(i),
			color = colorOf ? colorOf(i) : 0,
			name = at * COLORS + color;
		const rest = rests.get(name);
		if (rest) rest.value += weights[i];
		else rests.set(name, {at, origin: at, value: weights[i], color});
	}
	/**
	 * @param {Rest} rest
	 * @param {Set<number>} above
	 * @returns {number} the next caller that is not on the path already
	 */
	const callerOf = (rest, above) => {
		let at = parent[rest.at];
		while (question.isMerged && at >= 0 && above.has(frame[at])) at = parent[at];
		return at;
	};
	/** @param {Rest[]} stacks @param {Set<number>} above @returns {Branch[]} */
	const divide = (stacks, above) => {
		/** @type {Map<number, Rest[]>} */
		const groups = new Map();
		for (const rest of stacks) {
			if (rest.at < 0) continue;
			const group = groups.get(frame[rest.at]);
			if (group) group.push(rest);
			else groups.set(frame[rest.at], [rest]);
		}
		return [...groups].map(([key, group]) => {
			const colors = colorOf ? new Float64Array(COLORS) : null;
			let value = 0,
				self = 0;
			const path = new Set(above).add(key);
			const next = group.map((rest) => ({...rest, at: callerOf(rest, path)}));
			group.forEach((rest, i) => {
				value += rest.value;
				if (next[i].at < 0) self += rest.value;
				if (colors) colors[rest.color] += rest.value;
			});
			return {frame: key, value, self, colors, node: group[0].origin, divide: () => divide(next, path)};
		});
	};
	return divide([...rests.values()], new Set());
}

/**
 * @param {Model} model
 * @param {FlameQuestion} question
 * @returns {Branch[]} the first row below the root: functions, or processes or threads
 */
function firstBranches(model, question) {
	const divide = question.isInverted ? divideInverted : divideFromRoot;
	if (question.by !== "process" && question.by !== "thread")
		return divide(
			model,
			question,
			cached(model, "all cells", () => Uint32Array.from({length: model.cells.count}, (_, i) => i)),
		);
	const {order, begins} = orderCells(model, question.by),
		weights = cellWeights(model, question.measure);
	const branches = [];
	for (let key = 0; key + 1 < begins.length; key++) {
		const indexes = order.subarray(begins[key], begins[key + 1]);
		let value = 0;
		for (let place = begins[key]; place < begins[key + 1]; place++)
			if (question.hits[order[place]]) value += weights[order[place]];
		if (value)
			branches.push({
				frame: -1 - key,
				value,
				self: 0,
				colors: null,
				node: -1,
				divide: () => divide(model, question, indexes),
			});
	}
	return branches;
}

/** @param {Float64Array | null} colors @param {number} value @param {number} inherited @returns {number} */
function mainSeries(colors, value, inherited) {
	if (!colors) return inherited;
	for (let color = 0; color < SERIES_MAX; color++) if (colors[color] > value * SERIES_SHARE) return color;
	return -1;
}

class Layout {
	/** @param {Model} model @param {FlameQuestion} question */
	constructor(model, question) {
		this.model = model;
		this.question = question;
		this.hashes = frameHashes(model);
		this.scale = 0;
		/** @type {Placed[]} */
		this.frames = [];
	}

	/** @param {Branch} branch @returns {number} */
	hashOf(branch) {
		return branch.frame >= 0
			? this.hashes[branch.frame]
			: hashText(groupName(this.model, this.question.by, -1 - branch.frame).id);
	}

	/** @param {Branch} branch @param {Placed} above @returns {Placed} without a place */
	make(branch, above) {
		const isGroup = branch.frame < 0,
			{by} = this.question,
			hash = this.hashOf(branch);
		const series = isGroup
			? findSeries(this.model, by).ofGroup[-1 - branch.frame]
			: mainSeries(branch.colors, branch.value, above.series);
		return {
			kind: isGroup ? "group" : "frame",
			key: extendKey(above.key, hash),
			parent: -1,
			depth: 0,
			x: 0,
			width: branch.value * this.scale,
			value: branch.value,
			self: branch.self,
			frame: branch.frame,
			run: [],
			count: 0,
			series: series === SERIES_MAX ? -1 : series,
			node: branch.node,
			path: `${above.path}${above.path && "."}${hash.toString(36)}`,
			name: isGroup
				? groupName(this.model, by, -1 - branch.frame).name
				: this.model.cells.frames[branch.frame].short,
		};
	}

	/**
	 * @param {Placed} placed
	 * @param {number} parent
	 * @param {number} depth
	 * @param {number} x
	 * @returns {number} its index
	 */
	put(placed, parent, depth, x) {
		Object.assign(placed, {parent, depth, x});
		return this.frames.push(placed) - 1;
	}

	/**
	 * @param {Branch[]} branches
	 * @param {Placed} above
	 * @returns {Sorted} the largest first, or in the order of before
	 */
	sort(branches, above) {
		const {order} = this.question,
			made = branches.map((branch) => ({branch, placed: this.make(branch, above)}));
		const place = (/** @type {Placed} */ placed) => order?.get(placed.key) ?? Infinity;
		return made.sort((a, b) => {
			const first = place(a.placed),
				second = place(b.placed);
			return first !== second
				? first - second
				: b.branch.value - a.branch.value || (a.placed.name < b.placed.name ? -1 : 1);
		});
	}

	/**
	 * @param {Sorted} children
	 * @param {Branch} branch
	 * @returns {Sorted[0] | null} the child that has nearly all of it, while no other one is wide
	 */
	singleChild(children, branch) {
		const main = children.find((child) => child.branch.value >= branch.value * CHAIN_SHARE);
		const isSingle =
			main &&
			branch.frame >= 0 &&
			children.every((child) => child === main || child.placed.width <= CHAIN_OTHER_MAX);
		return isSingle ? main : null;
	}

	/**
	 * @param {Branch} branch
	 * @param {Placed} placed
	 * @param {Sorted} children
	 * @returns {Sorted} the frames of the chain that begins here, and the one that follows it; or nothing
	 */
	follow(branch, placed, children) {
		const run = [];
		for (let last = {branch, placed}; ;) {
			run.push(last);
			const next = this.singleChild(children, last.branch);
			if (!next) return run.length > CHAIN_MIN ? run : [];
			last = next;
			children = this.sort(last.branch.divide(), last.placed);
		}
	}

	/** @param {Branch[]} branches @param {number} parent index @param {number} depth @param {number} x */
	placeChildren(branches, parent, depth, x) {
		this.placeSorted(this.sort(branches, this.frames[parent]), parent, depth, x);
	}

	/** @param {Sorted} sorted @param {number} parent index @param {number} depth @param {number} x */
	placeSorted(sorted, parent, depth, x) {
		let count = 0,
			value = 0;
		for (const {branch, placed} of sorted) {
			if (placed.width < WIDTH_MIN) {
				count++;
				value += branch.value;
				continue;
			}
			this.place(branch, placed, parent, depth, x);
			x += placed.width;
		}
		if (count) {
			const above = this.frames[parent],
				width = value * this.scale;
			this.put(
				{
					...above,
					kind: "small",
					key: extendKey(above.key, 1),
					width,
					value,
					self: 0,
					frame: -1,
					count,
					run: [],
					series: -1,
					node: -1,
					name: `${count} smaller`,
				},
				parent,
				depth,
				x,
			);
		}
	}

	/** @param {Branch} branch @param {Placed} placed @param {number} parent @param {number} depth @param {number} x */
	place(branch, placed, parent, depth, x) {
		if (placed.kind === "group") {
			this.placeChildren(branch.divide(), this.put(placed, parent, depth, x), depth + 1, x);
			return;
		}
		const children = this.sort(branch.divide(), placed),
			isOpened = this.question.opened.has(placed.key);
		// Inverted, the first frame is the answer, and never hidden in a chain.
		const isFirst = this.question.isInverted && ["root", "group"].includes(this.frames[parent].kind);
		const run = isOpened || isFirst ? [] : this.follow(branch, placed, children);
		if (!run.length) {
			const index = this.put(placed, parent, depth, x);
			if (isOpened) this.placeOpened(branch, children, index, depth + 1, x);
			else this.placeSorted(children, index, depth + 1, x);
			return;
		}
		const count = run.length - 1,
			next = run[count],
			members = run.slice(0, count);
		const index = this.put(
			{
				...placed,
				kind: "chain",
				run: members.map((member) => member.branch.frame),
				count,
				name: `${placed.name} … ${members[count - 1].placed.name}`,
			},
			parent,
			depth,
			x,
		);
		this.place(next.branch, next.placed, index, depth + 1, x);
	}

	/**
	 * The members of an opened chain: each is a frame.
	 * @param {Branch} branch
	 * @param {Sorted} children
	 * @param {number} index
	 * @param {number} depth
	 * @param {number} x
	 */
	placeOpened(branch, children, index, depth, x) {
		const besides = [];
		for (let next = this.singleChild(children, branch); next; next = this.singleChild(children, branch)) {
			besides.push({others: children.filter((child) => child !== next), index, depth, x: x + next.placed.width});
			index = this.put(next.placed, index, depth++, x);
			branch = next.branch;
			children = this.sort(branch.divide(), next.placed);
		}
		this.placeSorted(children, index, depth, x);
		for (const row of besides) this.placeSorted(row.others, row.index, row.depth, row.x);
	}
}

/**
 * @param {Layout} layout
 * @param {Branch[]} branches
 * @param {Placed} root
 * @param {string} path
 * @returns {{branch: Branch, placed: Placed, count: number} | null} the branch of a path
 */
function findFocus(layout, branches, root, path) {
	let found = null,
		above = root,
		count = 0;
	for (const word of path ? path.split(".") : []) {
		const hash = parseInt(word, 36),
			branch = branches.find((candidate) => layout.hashOf(candidate) === hash);
		if (!branch) return null;
		found = {branch, placed: layout.make(branch, above), count: ++count};
		above = found.placed;
		branches = branch.divide();
	}
	return found;
}

/**
 * @param {Model} model @param {FlameQuestion} question
 * @returns {{frames: Placed[], total: number, rows: number, isFocused: boolean}} frames, each behind its parent. `total` is the root's value
 */
export function layoutFlame(model, question) {
	const layout = new Layout(model, question),
		branches = firstBranches(model, question);
	const total = branches.reduce((sum, branch) => sum + branch.value, 0);
	/** @type {Placed} */
	const root = {
		kind: "root",
		key: 0,
		parent: -1,
		depth: 0,
		x: 0,
		width: question.width,
		value: total,
		self: 0,
		frame: -1,
		run: [],
		count: 0,
		series: -1,
		node: -1,
		path: "",
		name: question.title,
	};
	layout.frames.push(root);
	const focus = findFocus(layout, branches, root, question.focus);
	layout.scale = total ? question.width / (focus ? focus.branch.value : total) : 0;
	if (!focus) {
		layout.placeChildren(branches, 0, 1, 0);
	} else {
		const {branch, placed, count} = focus;
		let index = 0;
		if (count > 1)
			index = layout.put(
				{
					...root,
					kind: "small",
					key: 1,
					value: placed.value,
					count: count - 1,
					name: `${count - 1} ${count > 2 ? "frames" : "frame"} above`,
				},
				0,
				1,
				0,
			);
		layout.place(branch, {...placed, width: question.width}, index, count > 1 ? 2 : 1, 0);
	}
	return {
		frames: layout.frames,
		total,
		rows: layout.frames.reduce((most, frame) => Math.max(most, frame.depth + 1), 0),
		isFocused: Boolean(focus),
	};
}

/**
 * The direct callers and callees of a function, by bytes of the selection in which it is on the path. A recursive call counts once.
 * @param {Model} model @param {Uint8Array} hits @param {Measure} measure @param {number} frame index of frames
 * @returns {{callers: {frame: number, value: number}[], callees: {frame: number, value: number}[], value: number}} -1 stands for the start of a thread, or for itself
 */
export function neighboursOf(model, hits, measure, frame) {
	const {parent, frame: frames, node, nodeCount, count} = model.cells,
		weights = cellWeights(model, measure);
	const sums = new Float64Array(nodeCount);
	for (let i = 0; i < count; i++) if (hits[i]) sums[node[i]] += weights[i];
	const self = sums.slice();
	addBelow(model, sums);
	const callers = new Map(),
		callees = new Map(),
		inside = new Uint8Array(nodeCount);
	let value = 0;
	const add = (/** @type {Map<number, number>} */ map, /** @type {number} */ key, /** @type {number} */ more) =>
		more && map.set(key, (map.get(key) ?? 0) + more);
	for (let at = 0; at < nodeCount; at++) {
		const above = parent[at],
			isInside = above >= 0 && inside[above] === 1;
		inside[at] = Number(isInside || frames[at] === frame);
		if (frames[at] === frame && !isInside) {
			add(callers, above < 0 ? -1 : frames[above], sums[at]);
			value += sums[at];
		}
		// The innermost call decides whom it called.
		if (frames[at] === frame) add(callees, -1, self[at]);
		else if (above >= 0 && frames[above] === frame)
			add(callees, frames[at], sums[at] - sumsOfInner(model, sums, at, frame));
	}
	const sorted = (/** @type {Map<number, number>} */ map) =>
		[...map]
			.map(([key, sum]) => ({frame: key, value: sum}))
			.filter((row) => row.value > 0)
			.sort((a, b) => b.value - a.value);
	return {callers: sorted(callers), callees: sorted(callees), value};
}

/**
 * @param {Model} model
 * @param {Float64Array} sums
 * @param {number} top
 * @param {number} frame
 * @returns {number} sums of the outermost calls of a function below `top`
 */
function sumsOfInner(model, sums, top, frame) {
	const {begins, children} = cached(model, "children", () => listChildren(model.cells.parent, model.cells.nodeCount));
	let sum = 0;
	const waiting = [top];
	while (waiting.length) {
		const at = /** @type {number} */ (waiting.pop());
		for (let i = begins[at]; i < begins[at + 1]; i++) {
			const child = children[i];
			if (!sums[child]) continue;
			if (model.cells.frame[child] === frame) sum += sums[child];
			else waiting.push(child);
		}
	}
	return sum;
}

/**
 * @param {Model} model @param {string} path of a frame of the layout @param {{by: Grouping, isInverted: boolean, isFolded: boolean, isMerged: boolean}} state
 * @returns {Uint8Array} for each cell, whether it is in this frame
 */
export function cellsOnPath(model, path, state) {
	const {node, asker, count} = model.cells,
		hashes = frameHashes(model);
	const words = path.split(".").map((word) => parseInt(word, 36)),
		isSplit = state.by === "process" || state.by === "thread";
	const group = isSplit ? words.shift() : undefined,
		{keys} = groupCells(model, state.by);
	const matching = state.isInverted
		? stacksEndingWith(model, words, hashes, state.isMerged)
		: stacksBeginningWith(model, words, hashes, state.isMerged);
	const groups = new Map();
	const isInGroup = (/** @type {number} */ key) => {
		if (!groups.has(key)) groups.set(key, hashText(groupName(model, state.by, key).id) === group);
		return groups.get(key);
	};
	const mask = new Uint8Array(count);
	for (let i = 0; i < count; i++)
		mask[i] = Number(
			matching[state.isFolded ? asker[node[i]] : node[i]] === 1 && (group === undefined || isInGroup(keys[i])),
		);
	return mask;
}

/**
 * @param {Model} model
 * @param {number[]} words hashes
 * @param {Uint32Array} hashes
 * @param {boolean} isMerged
 * @returns {Uint8Array} for each node of the cells
 */
function stacksBeginningWith(model, words, hashes, isMerged) {
	const tree = callTree(model, isMerged),
		count = tree.parent.length;
	let at = count;
	for (const word of words) {
		const children = tree.children.subarray(tree.begins[at], tree.begins[at + 1]);
		const next = children.find((child) => hashes[tree.frame[child]] === word);
		if (next === undefined) return new Uint8Array(model.cells.nodeCount);
		at = next;
	}
	const inside = new Uint8Array(count + 1);
	for (let node = 0; node < count; node++)
		inside[node] = Number(
			at === count || node === at || (tree.parent[node] >= 0 && inside[tree.parent[node]] === 1),
		);
	return Uint8Array.from(tree.ofNode, (node) => inside[node]);
}

/**
 * @param {Model} model
 * @param {number[]} words hashes, of the innermost frame first
 * @param {Uint32Array} hashes
 * @param {boolean} isMerged
 * @returns {Uint8Array} for each node of the cells
 */
function stacksEndingWith(model, words, hashes, isMerged) {
	const {parent, frame, nodeCount} = model.cells,
		found = new Uint8Array(nodeCount);
	for (let node = 0; node < nodeCount; node++) {
		const above = new Set();
		let at = node,
			matched = 0;
		while (at >= 0 && matched < words.length && hashes[frame[at]] === words[matched]) {
			above.add(frame[at]);
			matched++;
			at = parent[at];
			while (isMerged && at >= 0 && above.has(frame[at])) at = parent[at];
		}
		found[node] = Number(matched === words.length);
	}
	return found;
}
