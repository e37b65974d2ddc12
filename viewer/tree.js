// SPDX-License-Identifier: MIT
// The layout of the flame view: sums over cells become frames with a place. Pure: nothing here knows the document.
//
// A tree of calls is made once for a model: the nodes of cells, where callees of one name are one, or also recursive calls. A branch of the
// layout is a node of this tree with the sums of the selection, or, inverted, a set of stacks with equal innermost frames. Branches divide only
// while they are wide enough to be seen.
import {extendKey, hashText} from "./hash.js";
import {
	addBelow,
	cached,
	cellWeights,
	findSeries,
	frameHashes,
	groupCells,
	groupName,
	orderCells,
	SERIES_MAX,
} from "./cells.js";
/** @import {Grouping, Measure, Model, Selected} from "./cells.js" */

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
 * @property {number} node of the cells, or -1
 * @property {(least: number) => Division} divide
 *
 * @typedef {{branches: Branch[], count: number, value: number}} Division children in any order; those below a least value are counted, with their sum
 * @typedef {{rows: {branch: Branch, placed: Placed}[], count: number, value: number}} Sorted
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
 * @property {Uint8Array} hits @property {Selected | null} [selected] that has these hits @property {number} [total] of the selection, if these cells are a part of it @property {number} [classes] bits of it that are hits @property {Measure} measure @property {Grouping} by of the timeline
 * @property {boolean} isFolded @property {boolean} isInverted @property {boolean} isMerged recursive calls are one
 * @property {number} width @property {Set<number>} opened keys of chains @property {string} focus a path, or empty
 * @property {Map<number, number> | null} order places of keys while dragging, or null to sort by value @property {string} title
 */

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
export function listChildren(parent, count) {
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

/** @param {FlameQuestion} question @returns {boolean} whether the first row are processes or threads */
function isSplit(question) {
	return question.by === "process" || question.by === "thread";
}

/**
 * The call tree, once for each group of a split view: only the nodes that the group's cells have.
 * @typedef {object} Forest
 * @property {CallTree} tree
 * @property {Int32Array} parent -1 for outermost frames @property {Uint32Array} node of the call tree
 * @property {Uint32Array} ofCell the innermost node of each cell @property {Uint32Array} groups where each group's nodes begin @property {Uint32Array} roots where its outermost nodes begin in `children`
 * @property {Uint32Array} begins @property {Uint32Array} children as of a call tree
 * @property {Float64Array} own sums of each node alone, of the selection `of` and by its colours if it has some; a step of a drag changes them @property {any[]} of
 * @property {Float64Array} self @property {Float64Array} value of a layout, made anew for each one @property {Float64Array | null} colors
 */

/** @param {Model} model @param {FlameQuestion} question @returns {Forest} */
function forestOf(model, question) {
	const isMerged = question.isMerged && !question.isInverted,
		by = isSplit(question) ? question.by : "";
	return cached(model, `forest ${isMerged} ${question.isFolded} ${by}`, () => {
		const tree = callTree(model, isMerged),
			{node, asker, count} = model.cells,
			ofCell = new Uint32Array(count);
		for (let i = 0; i < count; i++) ofCell[i] = tree.ofNode[question.isFolded ? asker[node[i]] : node[i]];
		const forest = by ? plantForest(tree, ofCell, orderCells(model, question.by)) : wholeForest(tree, ofCell),
			size = forest.parent.length;
		return {
			...forest,
			own: new Float64Array(by ? size : size * COLORS),
			of: [],
			self: new Float64Array(size),
			value: new Float64Array(size),
			colors: by ? null : new Float64Array(size * COLORS),
		};
	});
}

/** @param {CallTree} tree @param {Uint32Array} ofCell */
function wholeForest(tree, ofCell) {
	const {parent, begins, children} = tree;
	return {
		tree,
		parent,
		node: Uint32Array.from(parent, (_, i) => i),
		ofCell,
		groups: Uint32Array.of(0, parent.length),
		roots: Uint32Array.of(begins[parent.length], begins[parent.length + 1]),
		begins,
		children,
	};
}

/**
 * @param {CallTree} tree
 * @param {Uint32Array} nodes of cells
 * @param {{order: Uint32Array, begins: Uint32Array}} ordered cells
 */
function plantForest(tree, nodes, {order, begins: cellBegins}) {
	const count = tree.parent.length,
		places = new Int32Array(count),
		groups = new Uint32Array(cellBegins.length),
		ofCell = new Uint32Array(nodes.length);
	/** @type {number[]} */
	const parent = [],
		/** @type {number[]} */ node = [];
	for (let group = 0; group + 1 < cellBegins.length; group++) {
		const cells = order.subarray(cellBegins[group], cellBegins[group + 1]);
		places.fill(-1);
		for (const i of cells) for (let at = nodes[i]; at >= 0 && places[at] < 0; at = tree.parent[at]) places[at] = 0;
		// Callers come before callees, as in the tree.
		for (let at = 0; at < count; at++) {
			if (places[at] < 0) continue;
			places[at] = node.push(at) - 1;
			parent.push(tree.parent[at] < 0 ? -1 : places[tree.parent[at]]);
		}
		for (const i of cells) ofCell[i] = places[nodes[i]];
		groups[group + 1] = node.length;
	}
	const above = Int32Array.from(parent),
		{begins, children} = listChildren(above, above.length),
		// Outermost nodes stand last, in the order of groups.
		roots = new Uint32Array(groups.length).fill(begins[above.length]);
	for (let group = 1; group < groups.length; group++) {
		roots[group] = roots[group - 1];
		while (roots[group] < children.length && children[roots[group]] < groups[group]) roots[group]++;
	}
	return {tree, parent: above, node: Uint32Array.from(node), ofCell, groups, roots, begins, children};
}

/** @param {Model} model @param {Grouping} by @param {Forest} forest @returns {Uint32Array} of each cell: where its bytes go in `colors` */
function colorSlots(model, by, forest) {
	const slots = new Uint32Array(forest.ofCell.length),
		{keys} = groupCells(model, by),
		{ofGroup} = findSeries(model, by);
	for (let i = 0; i < slots.length; i++) slots[i] = forest.ofCell[i] * COLORS + ofGroup[keys[i]];
	return slots;
}

/**
 * The sums of the selection: of each node alone.
 * @param {Model} model @param {FlameQuestion} question @param {Forest} forest whose sums change
 */
function sumNodes(model, question, forest) {
	const {own, self, colors, ofCell} = forest,
		{hits, by, selected} = question,
		weights = cellWeights(model, question.measure),
		slots = colors
			? cached(model, `slots ${by} ${question.isMerged && !question.isInverted} ${question.isFolded}`, () =>
					colorSlots(model, by, forest),
				)
			: ofCell,
		change = selected?.change;
	if (change && change.of === forest.of[0] && forest.of[1] === weights && forest.of[2] === slots) {
		for (let at = 0; at < change.cells.length; at++) {
			const i = change.cells[at],
				step = hits[i] - Number((change.bits[at] & (question.classes ?? 0)) !== 0);
			own[slots[i]] += step * weights[i];
		}
	} else {
		own.fill(0);
		for (let i = 0; i < hits.length; i++) if (hits[i]) own[slots[i]] += weights[i];
	}
	forest.of = [selected, weights, slots];
	self.fill(0);
	(colors ?? self).set(own);
	if (!colors) return;
	for (let at = 0, slot = 0; at < self.length; at++)
		for (let color = 0; color < COLORS; color++) self[at] += colors[slot++];
}

/** @param {Forest} forest whose nodes get the sums of those below them, too */
function sumBelow({parent, self, value, colors}) {
	value.set(self);
	for (let at = value.length - 1; at >= 0; at--) {
		const above = parent[at];
		if (above < 0 || !value[at]) continue;
		value[above] += value[at];
		if (colors)
			for (let color = 0; color < COLORS; color++) colors[above * COLORS + color] += colors[at * COLORS + color];
	}
}

/** @param {Forest} forest @returns {(from: number, to: number, least: number) => Division} of a part of the list of children */
function dividerFromRoot({tree, node, begins, children, self, value, colors}) {
	/** @type {(from: number, to: number, least: number) => Division} */
	const divide = (from, to, least) => {
		/** @type {Division} */
		const found = {branches: [], count: 0, value: 0};
		for (let i = from; i < to; i++) {
			const child = children[i],
				sum = value[child];
			if (!sum) continue;
			if (sum < least) {
				found.count++;
				found.value += sum;
				continue;
			}
			found.branches.push({
				frame: tree.frame[node[child]],
				value: sum,
				self: self[child],
				node: tree.source[node[child]],
				divide: (below) => divide(begins[child], begins[child + 1], below),
				colors: colors && colors.subarray(child * COLORS, (child + 1) * COLORS),
			});
		}
		return found;
	};
	return divide;
}

/**
 * @typedef {{at: number, origin: number, value: number, color: number}} Rest of a stack: `at` is its next frame, -1
 * none
 */

/** @param {Forest} forest @param {number} from @param {number} to nodes @returns {Rest[]} whole stacks */
function stacksOf({node, self, colors}, from, to) {
	/** @type {Rest[]} */
	const rests = [];
	for (let i = from; i < to; i++) {
		if (!self[i]) continue;
		const at = node[i];
		if (!colors) rests.push({at, origin: at, value: self[i], color: 0});
		else
			for (let color = 0; color < COLORS; color++)
				if (colors[i * COLORS + color]) rests.push({at, origin: at, value: colors[i * COLORS + color], color});
	}
	return rests;
}

/**
 * @param {Forest} forest
 * @param {boolean} isMerged
 * @returns {(stacks: Rest[], above: Set<number>, least: number) => Division} from the function that asked
 */
function dividerInverted({tree, colors: hasColors}, isMerged) {
	const {parent, frame} = tree;
	/**
	 * @param {Rest} rest
	 * @param {Set<number>} above
	 * @returns {number} the next caller that is not on the path already
	 */
	const callerOf = (rest, above) => {
		let at = parent[rest.at];
		while (isMerged && at >= 0 && above.has(frame[at])) at = parent[at];
		return at;
	};
	/** @type {(stacks: Rest[], above: Set<number>, least: number) => Division} */
	const divide = (stacks, above, least) => {
		/** @type {Map<number, {value: number, rests: Rest[]}>} */
		const groups = new Map();
		for (const rest of stacks) {
			if (rest.at < 0) continue;
			const group = groups.get(frame[rest.at]);
			if (group) {
				group.value += rest.value;
				group.rests.push(rest);
			} else groups.set(frame[rest.at], {value: rest.value, rests: [rest]});
		}
		/** @type {Division} */
		const found = {branches: [], count: 0, value: 0};
		for (const [key, {value, rests}] of groups) {
			if (value < least) {
				found.count++;
				found.value += value;
				continue;
			}
			// Only recursion that is merged has to know what was passed.
			const colors = hasColors ? new Float64Array(COLORS) : null,
				path = isMerged ? new Set(above).add(key) : above;
			let self = 0;
			const next = rests.map((rest) => ({...rest, at: callerOf(rest, path)}));
			for (const rest of next) {
				if (rest.at < 0) self += rest.value;
				if (colors) colors[rest.color] += rest.value;
			}
			found.branches.push({
				frame: key,
				value,
				self,
				colors,
				node: tree.source[rests[0].origin],
				divide: (below) => divide(next, path, below),
			});
		}
		return found;
	};
	return divide;
}

/** @param {Forest} forest @param {FlameQuestion} question @returns {(group: number, least: number) => Division} */
function dividerOf(forest, question) {
	const {groups, roots} = forest;
	if (question.isInverted) {
		const divide = dividerInverted(forest, question.isMerged);
		return (group, least) => divide(stacksOf(forest, groups[group], groups[group + 1]), new Set(), least);
	}
	const divide = dividerFromRoot(forest);
	return (group, least) => divide(roots[group], roots[group + 1], least);
}

/**
 * @param {Model} model
 * @param {FlameQuestion} question
 * @returns {Branch[]} the first row below the root: functions, or processes or threads
 */
function firstBranches(model, question) {
	const forest = forestOf(model, question),
		{groups, self} = forest,
		divide = dividerOf(forest, question);
	sumNodes(model, question, forest);
	if (!question.isInverted) sumBelow(forest);
	if (!isSplit(question)) return divide(0, 0).branches;
	const branches = [];
	for (let group = 0; group + 1 < groups.length; group++) {
		let value = 0;
		for (let at = groups[group]; at < groups[group + 1]; at++) value += self[at];
		if (value)
			branches.push({
				frame: -1 - group,
				value,
				self: 0,
				colors: null,
				node: -1,
				divide: (/** @type {number} */ least) => divide(group, least),
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

	/** @param {Branch} branch @param {Placed} above its frame @returns {Sorted} its children */
	divide(branch, above) {
		return this.sort(branch.divide(this.scale ? WIDTH_MIN / this.scale : 0), above);
	}

	/**
	 * @param {Division} division
	 * @param {Placed} above
	 * @returns {Sorted} the largest first, or in the order of before
	 */
	sort({branches, count, value}, above) {
		const {order} = this.question,
			made = branches.map((branch) => ({branch, placed: this.make(branch, above)}));
		const place = (/** @type {Placed} */ placed) => order?.get(placed.key) ?? Infinity;
		made.sort((a, b) => {
			const first = place(a.placed),
				second = place(b.placed);
			return first !== second
				? first - second
				: b.branch.value - a.branch.value || (a.placed.name < b.placed.name ? -1 : 1);
		});
		return {rows: made, count, value};
	}

	/**
	 * @param {Sorted} children
	 * @param {Branch} branch
	 * @returns {Sorted["rows"][0] | null} the child that has nearly all of it, while no other one is wide
	 */
	singleChild({rows}, branch) {
		const main = rows.find((child) => child.branch.value >= branch.value * CHAIN_SHARE);
		const isSingle =
			main && branch.frame >= 0 && rows.every((child) => child === main || child.placed.width <= CHAIN_OTHER_MAX);
		return isSingle ? main : null;
	}

	/**
	 * @param {Branch} branch
	 * @param {Placed} placed
	 * @param {Sorted} children
	 * @returns {Sorted["rows"]} the frames of the chain that begins here, and the one that follows it; or nothing
	 */
	follow(branch, placed, children) {
		const run = [];
		for (let last = {branch, placed}; ;) {
			run.push(last);
			const next = this.singleChild(children, last.branch);
			if (!next) return run.length > CHAIN_MIN ? run : [];
			last = next;
			children = this.divide(last.branch, last.placed);
		}
	}

	/** @param {Sorted} sorted @param {number} parent index @param {number} depth @param {number} x */
	placeSorted(sorted, parent, depth, x) {
		let {count, value} = sorted;
		for (const {branch, placed} of sorted.rows) {
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
			this.placeSorted(this.divide(branch, placed), this.put(placed, parent, depth, x), depth + 1, x);
			return;
		}
		const children = this.divide(branch, placed),
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
			const others = {...children, rows: children.rows.filter((child) => child !== next)};
			besides.push({others, index, depth, x: x + next.placed.width});
			index = this.put(next.placed, index, depth++, x);
			branch = next.branch;
			children = this.divide(branch, next.placed);
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
		({branches} = branch.divide(0));
	}
	return found;
}

/**
 * @param {Model} model @param {FlameQuestion} question
 * @returns {{frames: Placed[], total: number, rows: number, isFocused: boolean, focusNode: number}} frames, each behind its parent. `total` is the root's value; focusNode is a node or -1
 */
export function layoutFlame(model, question) {
	const layout = new Layout(model, question),
		branches = firstBranches(model, question);
	const total = question.total ?? branches.reduce((sum, branch) => sum + branch.value, 0);
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
		layout.placeSorted(layout.sort({branches, count: 0, value: 0}, root), 0, 1, 0);
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
		focusNode: focus ? focus.placed.node : -1,
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
		group = isSplit(/** @type {FlameQuestion} */ (/** @type {unknown} */ (state))) ? words.shift() : undefined,
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
