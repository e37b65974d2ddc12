// SPDX-License-Identifier: MIT
// The engine: sums over cells for a selection. All numbers of the page that depend on a selection are computed here, and nowhere else.
// Choices and filters are small; a pass over all cells makes the sums that a view needs. Nothing here knows the document.
import {FREED, MARK_EARLIER} from "./decode.js";
import {extendKey, hashText} from "./hash.js";
import {safeText} from "./hostile.js";
import {sizeName, lifeName} from "./format.js";

/** Window classes, as bits. */
export const AIFI = 1,
	AIFO = 2,
	AOFI = 4,
	AOFO = 8;
export const CLASSES = /** @type {const} */ (["AIFI", "AIFO", "AOFI", "AOFO"]);

/** @param {Cells} cells @param {Trace} trace @param {Model | null} whole @returns {Model} */
export function makeModel(cells, trace, whole = null) {
	const images = [...new Set(cells.frames.map((frame) => frame.image))];
	const indexes = new Map(images.map((image, i) => [image, i]));
	const imageOf = Uint32Array.from(cells.frames, (frame) => indexes.get(frame.image) ?? 0);
	return {cells, trace, images, imageOf, last: cells.bounds.length - 1, whole, cache: new Map()};
}

/** @template T @param {Model} model @param {string} name @param {() => T} make @returns {T} */
export function cached(model, name, make) {
	if (!model.cache.has(name)) model.cache.set(name, make());
	return model.cache.get(name);
}

/** How many groups each grouping has, and the group of cell `i`. */
const GROUPINGS =
	/** @type {Record<Grouping, {count: (m: Model) => number, key: (m: Model, i: number) => number}>} */ ({
		function: {count: (m) => m.cells.frames.length, key: ({cells: c}, i) => c.frame[c.asker[c.node[i]]]},
		stack: {count: (m) => m.cells.nodeCount, key: ({cells: c}, i) => c.asker[c.node[i]]},
		image: {count: (m) => m.images.length, key: ({cells: c, imageOf}, i) => imageOf[c.frame[c.asker[c.node[i]]]]},
		thread: {count: (m) => m.trace.threads.length, key: ({cells: c}, i) => c.thread[i]},
		process: {count: (m) => m.trace.processes.length, key: (m, i) => m.trace.threads[m.cells.thread[i]].process},
		heap: {count: (m) => m.trace.heaps.length, key: ({cells: c}, i) => c.heap[i]},
		size: {count: () => 65, key: ({cells: c}, i) => c.size[i]},
		life: {count: () => 41, key: ({cells: c}, i) => (c.kind[i] === FREED ? c.life[i] : 40)},
	});

/** @param {Model} model @param {Grouping} by @returns {Grouped} */
export function groupCells(model, by) {
	return cached(model, `group ${by}`, () => {
		const {key} = GROUPINGS[by],
			keys = new Uint32Array(model.cells.count);
		for (let i = 0; i < keys.length; i++) keys[i] = key(model, i);
		return {keys, count: GROUPINGS[by].count(model)};
	});
}

/** @param {any} row @param {string} member @param {number} key @returns {GroupName} such as python3 17 */
function named(row, member, key) {
	return {name: `${safeText(row.name) || "?"} ${row[member] ?? ""}`.trim(), detail: "", id: String(key)};
}

/** Of a group: its name, and a text that is the same in other cells of the trace. */
const GROUP_NAMES = /** @type {Record<Grouping, (m: Model, key: number) => GroupName>} */ ({
	function: ({cells: {frames}}, key) => ({name: frames[key].short, detail: frames[key].image, id: frames[key].key}),
	stack: (m, key) => {
		const {frames, frame, parent} = m.cells,
			detail = parent[key] < 0 ? "" : `< ${frames[frame[parent[key]]].short}`;
		return {name: frames[frame[key]].short, detail, id: pathHashes(m)[key].toString(36)};
	},
	image: (m, key) => ({name: m.images[key] || "?", detail: "", id: m.images[key]}),
	thread: (m, key) => named(m.trace.threads[key], "tid", key),
	process: (m, key) => named(m.trace.processes[key], "pid", key),
	heap: (m, key) => ({...named(m.trace.heaps[key], "", key), detail: safeText(m.trace.heaps[key].handle)}),
	size: (_, key) => ({name: sizeName(key), detail: "", id: String(key)}),
	life: (_, key) => ({name: key === 40 ? "never freed" : lifeName(key), detail: "", id: String(key)}),
});

/** @param {Model} model @param {Grouping} by @param {number} key */
export function groupName(model, by, key) {
	const names = cached(model, `names ${by}`, () => /** @type {GroupName[]} */ ([]));
	return (names[key] ??= GROUP_NAMES[by](model, key));
}

/** @param {Model} model @param {Grouping} by @param {string} id @returns {number} the group with this id, or -1 */
export function findGroup(model, by, id) {
	const ids = cached(model, `ids ${by}`, () => {
		const found = new Map();
		for (let key = GROUPINGS[by].count(model) - 1; key >= 0; key--) found.set(groupName(model, by, key).id, key);
		return found;
	});
	return ids.get(id) ?? -1;
}

/** @param {Model} model @param {number} node @returns {string} the functions of a path, outermost first */
export function pathKey(model, node) {
	const keys = [];
	for (let at = node; at >= 0; at = model.cells.parent[at]) keys.push(model.cells.frames[model.cells.frame[at]].key);
	return keys.reverse().join("\n");
}

/** @param {Model} model @returns {Uint32Array} for each function, equal in other cells of the trace */
export function frameHashes(model) {
	return cached(model, "hashes", () => Uint32Array.from(model.cells.frames, (frame) => hashText(frame.key)));
}

/** @param {Model} model @returns {Float64Array} for each node, equal for the same path in other cells of the trace */
function pathHashes(model) {
	return cached(model, "path hashes", () => {
		const {parent, frame, nodeCount} = model.cells,
			hashes = frameHashes(model),
			found = new Float64Array(nodeCount);
		for (let node = 0; node < nodeCount; node++)
			found[node] = extendKey(parent[node] < 0 ? 0 : found[parent[node]], hashes[frame[node]]);
		return found;
	});
}

/** @param {string[]} keys of functions, outermost first @returns {string} the id of a stack in any cells of the trace */
export function stackId(keys) {
	return keys.reduce((key, text) => extendKey(key, hashText(text)), 0).toString(36);
}

/** @param {Model} model @param {(frame: number) => boolean} matches @returns {Uint8Array} for each node: whether a frame of its path matches */
export function pathsWith(model, matches) {
	const {parent, frame, nodeCount} = model.cells;
	const matching = Uint8Array.from(model.cells.frames, (_, i) => Number(matches(i)));
	const found = new Uint8Array(nodeCount);
	for (let node = 0; node < nodeCount; node++) {
		found[node] = matching[frame[node]] | (parent[node] >= 0 ? found[parent[node]] : 0);
	}
	return found;
}

/** @param {Model} model @param {string} text @returns {Uint8Array | null} for each function whether its name has this text, in any case. null: no text */
export function findFrames(model, text) {
	const wanted = text.trim().toLowerCase();
	if (!wanted) return null;
	return Uint8Array.from(model.cells.frames, (frame) =>
		Number(frame.short.toLowerCase().includes(wanted) || frame.full.toLowerCase().includes(wanted)),
	);
}

/** @param {Model} model @param {Filter} filter @returns {(i: number) => boolean} of a cell */
function filterTest(model, filter) {
	const {node, frames} = model.cells;
	if (filter.by === "function" || filter.by === "image" || filter.by === "search") {
		const found = filter.by === "search" ? findFrames(model, filter.key) : null;
		const paths = pathsWith(
			model,
			found
				? (i) => found[i] === 1
				: filter.by === "function"
					? (i) => frames[i].key === filter.key
					: (i) => frames[i].image === filter.key,
		);
		return (i) => paths[node[i]] === 1;
	}
	const {keys} = groupCells(model, filter.by),
		key = findGroup(model, filter.by, filter.key);
	return (i) => keys[i] === key;
}

/** @param {Model} model @param {Filter[]} filters @returns {Uint8Array | null} for each cell: whether it passes all filters. null: there are none */
export function filterCells(model, filters) {
	if (!filters.length) return null;
	return cached(model, `filter ${JSON.stringify(filters)}`, () => {
		const mask = new Uint8Array(model.cells.count).fill(1);
		for (const filter of filters) {
			const passes = filterTest(model, filter);
			for (let i = 0; i < mask.length; i++) mask[i] &= Number(passes(i) !== filter.hide);
		}
		return mask;
	});
}

/** @param {Model} model @returns {Uint8Array | null} for each cell whether its blocks are from before the trace. null: none are. No total has them; they are live. */
export function earlierCells(model) {
	return cached(model, "earlier", () => {
		const {frames, frame, node} = model.cells;
		return frames.some((row) => row.marks & MARK_EARLIER)
			? maskWhere(model, (i) => (frames[frame[node[i]]].marks & MARK_EARLIER) !== 0)
			: null;
	});
}

/** Places of a cell's ends as to a window: before it, in it, behind it; of an end that is no free: before it, or not. */
const BEFORE = 0,
	INSIDE = 1,
	BEHIND = 2,
	NOT_FREED = 3;
/** The bit of `birth * 4 + end`, where both are places. */
const CLASS_BITS = Uint8Array.from({length: 12}, (_, i) => {
	const birth = i >> 2,
		end = i & 3;
	if (birth === BEHIND || end === BEFORE) return 0;
	return birth === BEFORE ? (end === INSIDE ? AOFI : AOFO) : end === INSIDE ? AIFI : AIFO;
});

/** @param {Model} model @returns {Uint16Array} for each cell its end and, as the lowest bit, whether it is no free */
function endsOfCells(model) {
	return cached(model, "ends", () =>
		model.cells.end.map((end, i) => end * 2 + Number(model.cells.kind[i] !== FREED)),
	);
}

/** @param {Model} model @param {number} from @param {number} to bounds @returns {{births: Uint8Array, places: Uint8Array}} of births and ends, for CLASS_BITS */
function placesOf(model, from, to) {
	return {
		births: Uint8Array.from(
			{length: model.last + 1},
			(_, i) => (i <= from ? BEFORE : i <= to ? INSIDE : BEHIND) * 4,
		),
		places: Uint8Array.from({length: (model.last + 2) * 2}, (_, i) =>
			i >> 1 <= from ? BEFORE : i & 1 ? NOT_FREED : i >> 1 <= to ? INSIDE : BEHIND,
		),
	};
}

/** The class of each cell, without a branch. @param {Model} model @param {number} from @param {number} to bounds @param {Uint8Array | null} mask @returns {Uint8Array} bits; 0 for none */
function classifyCells(model, from, to, mask) {
	const {birth, count} = model.cells,
		ends = endsOfCells(model),
		bits = new Uint8Array(count),
		{births, places} = placesOf(model, from, to);
	for (let i = 0; i < count; i++) bits[i] = CLASS_BITS[births[birth[i]] + places[ends[i]]];
	if (mask) for (let i = 0; i < count; i++) bits[i] *= mask[i];
	return bits;
}

/** @param {Model} model @param {Choice} choice @param {Uint8Array | null} mask @returns {Selected} one pass over all cells */
export function selectCells(model, choice, mask) {
	const {bytes, blocks, count} = model.cells,
		isMoment = choice.kind === "moment",
		from = isMoment ? choice.at : choice.from,
		to = isMoment ? choice.at : choice.to,
		classes = chosenBits(choice);
	const bits = classifyCells(model, from, to, mask),
		earlier = isMoment ? null : earlierCells(model),
		hits = new Uint8Array(count),
		bytesOf = new Float64Array(16),
		blocksOf = new Float64Array(16);
	let earlierBytes = 0;
	for (let i = 0; earlier && i < count; i++) {
		if (!earlier[i] || !bits[i]) continue;
		earlierBytes += bytes[i];
		bits[i] = 0;
	}
	for (let i = 0; i < count; i++) {
		const bit = bits[i];
		bytesOf[bit] += bytes[i];
		blocksOf[bit] += blocks[i];
		hits[i] = Number((bit & classes) !== 0);
	}
	return {bits, hits, ...sumsOfClasses(bytesOf, blocksOf, isMoment, classes), earlierBytes, change: null};
}

/** @param {Float64Array} bytesOf by bits @param {Float64Array} blocksOf by bits @param {boolean} isMoment @param {number} classes */
function sumsOfClasses(bytesOf, blocksOf, isMoment, classes) {
	const ofClasses = (/** @type {Float64Array} */ sums) =>
		Float64Array.from(CLASSES, (_, i) => (isMoment ? 0 : sums[1 << i]));
	const chosen = (/** @type {Float64Array} */ sums) =>
		CLASSES.reduce((sum, _, i) => sum + (classes & (1 << i) ? sums[1 << i] : 0), 0);
	return {
		bytesOf,
		blocksOf,
		classBytes: ofClasses(bytesOf),
		classBlocks: ofClasses(blocksOf),
		bytes: chosen(bytesOf),
		blocks: chosen(blocksOf),
	};
}

/** @param {Uint16Array | Uint32Array} column of keys @param {number} count of keys @returns {{order: Uint32Array, begins: Uint32Array}} cells by key */
function orderBy(column, count) {
	const begins = new Uint32Array(count + 1),
		order = new Uint32Array(column.length);
	for (const key of column) begins[key + 1]++;
	for (let key = 0; key < count; key++) begins[key + 1] += begins[key];
	const next = begins.slice();
	for (let i = 0; i < column.length; i++) order[next[column[i]]++] = i;
	return {order, begins};
}

/** A step that moves more cells than this share is made anew. */
const STEP_MAX = 0.25;

/** @param {Model} model @param {number[][]} moved pairs of bounds, before and now @returns {Uint32Array[]} cells that begin or end between them: no others change their class. null: too many */
function cellsBetween(model, moved) {
	const {birth, end, count} = model.cells,
		orders = cached(model, "by bound", () => [orderBy(birth, model.last + 2), orderBy(end, model.last + 2)]),
		found = orders.flatMap(({order, begins}) =>
			moved.map(([a, b]) => order.subarray(begins[Math.min(a, b) + 1], begins[Math.max(a, b) + 1])),
		);
	return found.reduce((sum, cells) => sum + cells.length, 0) > count * STEP_MAX ? [] : found;
}

/**
 * The same as selectCells(), out of the selection before: most time of a drag would go by there. It takes the arrays of
 * that one, which must not be used any more. All sums are whole numbers, so they are exact also after many steps.
 * @param {Model} model @param {Choice} choice @param {Uint8Array | null} mask
 * @param {{model: Model, choice: Choice, mask: Uint8Array | null, selected: Selected}} last
 * @returns {Selected}
 */
export function followCells(model, choice, mask, last) {
	const {choice: before, selected} = last,
		isMoment = choice.kind === "moment",
		[from, to] = isMoment ? [choice.at, choice.at] : [choice.from, choice.to],
		[oldFrom, oldTo] = before.kind === "moment" ? [before.at, before.at] : [before.from, before.to];
	const isStep =
		last.model === model &&
		last.mask === mask &&
		choice.kind === before.kind &&
		!model.cells.isRounded &&
		(isMoment || (choice.classes === /** @type {any} */ (before).classes && !earlierCells(model)));
	const moved = isStep ? cellsBetween(model, [[oldFrom, from], ...(isMoment ? [] : [[oldTo, to]])]) : [];
	if (!moved.length) return selectCells(model, choice, mask);
	const {bytes, blocks, birth} = model.cells,
		ends = endsOfCells(model),
		{births, places} = placesOf(model, from, to),
		{bits, hits, bytesOf, blocksOf} = selected,
		classes = chosenBits(choice),
		most = moved.reduce((sum, cells) => sum + cells.length, 0),
		changed = new Uint32Array(most),
		oldBits = new Uint8Array(most),
		newBits = new Uint8Array(most);
	let count = 0;
	for (const cells of moved) {
		for (const i of cells) {
			const bit = mask && !mask[i] ? 0 : CLASS_BITS[births[birth[i]] + places[ends[i]]],
				old = bits[i];
			if (bit === old) continue;
			bytesOf[old] -= bytes[i];
			bytesOf[bit] += bytes[i];
			blocksOf[old] -= blocks[i];
			blocksOf[bit] += blocks[i];
			bits[i] = bit;
			hits[i] = Number((bit & classes) !== 0);
			oldBits[count] = old;
			newBits[count] = bit;
			changed[count++] = i;
		}
	}
	return {
		bits,
		hits,
		...sumsOfClasses(bytesOf, blocksOf, isMoment, classes),
		earlierBytes: 0,
		change: {of: selected, cells: changed.subarray(0, count), bits: oldBits, now: newBits},
	};
}

/** @param {Choice} choice @returns {number} the bits that it selects */
export function chosenBits(choice) {
	return choice.kind === "moment" ? AOFO | AOFI : choice.classes;
}

/** What a cell counts for. The peak: bytes of blocks that live at the exact peak of the whole run. @param {Model} model @param {Measure} measure @returns {Float64Array} */
export function cellWeights(model, measure) {
	if (measure !== "peak") return model.cells[measure];
	return cached(model, "weights of the peak", () => {
		const {birth, end, bytes, peak} = model.cells;
		return Float64Array.from(bytes, (value, i) => (peak >= 0 && birth[i] <= peak && peak < end[i] ? value : 0));
	});
}

/** @param {Model} model @param {Uint8Array} hits @param {Float64Array} weights @param {boolean} isFolded @returns {Float64Array} for each node, without those below it */
export function nodeSums(model, hits, weights, isFolded) {
	const {node, asker, nodeCount, count} = model.cells;
	const sums = new Float64Array(nodeCount);
	for (let i = 0; i < count; i++) {
		if (hits[i]) sums[isFolded ? asker[node[i]] : node[i]] += weights[i];
	}
	return sums;
}

/** @param {Model} model @param {Float64Array} sums changed: each node gets the sums of those below it, too */
export function addBelow(model, sums) {
	const {parent} = model.cells;
	for (let node = sums.length - 1; node >= 0; node--) {
		if (parent[node] >= 0) sums[parent[node]] += sums[node];
	}
}

/** The columns of sums that the class of a cell decides about. @param {GroupSums} sums @param {number} key @param {number} sign @param {number} bit @param {number} classes @param {boolean} isWindow @param {number} bytes @param {number} blocks */
function addCell(sums, key, sign, bit, classes, isWindow, bytes, blocks) {
	if (bit & classes) {
		sums.bytes[key] += sign * bytes;
		sums.blocks[key] += sign * blocks;
	}
	if (!isWindow) return;
	if (bit & (AIFI | AIFO)) {
		sums.made[key] += sign * bytes;
		sums.calls[key] += sign * blocks;
	}
	if (bit & (AIFO | AOFI)) sums.change[key] += bit === AIFO ? sign * bytes : -sign * bytes;
}

/** The sums of the selection before become those of this one. @param {Model} model @param {Choice} choice @param {Change} change @param {Grouped} grouped @param {GroupSums} sums */
export function followGroups(model, choice, change, grouped, sums) {
	const {bytes, blocks} = model.cells,
		isWindow = choice.kind === "window",
		classes = chosenBits(choice);
	for (let at = 0; at < change.cells.length; at++) {
		const i = change.cells[at];
		addCell(sums, grouped.keys[i], -1, change.bits[at], classes, isWindow, bytes[i], blocks[i]);
		addCell(sums, grouped.keys[i], 1, change.now[at], classes, isWindow, bytes[i], blocks[i]);
	}
}

/** @param {Model} model @param {Choice} choice @param {Selected} selected @param {Grouped} grouped @param {Uint8Array | null} mask @returns {GroupSums} */
export function sumGroups(model, choice, selected, grouped, mask) {
	const {bytes, blocks, count} = model.cells,
		{keys} = grouped;
	const make = () => new Float64Array(grouped.count);
	const sums = {bytes: make(), blocks: make(), made: make(), calls: make(), change: make()};
	const isWindow = choice.kind === "window",
		bits = isWindow ? selected.bits : classifyCells(model, 0, model.last, mask);
	for (let i = 0; i < count; i++) {
		const bit = bits[i],
			key = keys[i];
		if (selected.hits[i]) {
			sums.bytes[key] += bytes[i];
			sums.blocks[key] += blocks[i];
		}
		if (!bit) continue;
		if (bit & (AIFI | AIFO)) {
			sums.made[key] += bytes[i];
			sums.calls[key] += blocks[i];
		}
		if (isWindow && bit & (AIFO | AOFI)) sums.change[key] += bit === AIFO ? bytes[i] : -bytes[i];
	}
	return sums;
}

/** @param {Model} model @param {Grouping} by @returns {{order: Uint32Array, begins: Uint32Array}} cells in the order of groups, and where each group begins */
export function orderCells(model, by) {
	return cached(model, `order ${by}`, () => {
		const {keys, count} = groupCells(model, by);
		return orderBy(keys, count);
	});
}

/** @param {Float64Array} steps changed: each value gets the sum of those before it */
function addUp(steps) {
	for (let i = 1; i < steps.length; i++) steps[i] += steps[i - 1];
}

/** Live bytes at each bound. @param {Model} model @param {Uint8Array | null} mask of cells @returns {Float64Array} */
export function liveCurve(model, mask) {
	const {birth, end, bytes, count} = model.cells;
	const steps = new Float64Array(model.last + 2);
	for (let i = 0; i < count; i++) {
		if (mask && !mask[i]) continue;
		steps[birth[i]] += bytes[i];
		steps[end[i]] -= bytes[i];
	}
	addUp(steps);
	return steps.subarray(0, model.last + 1);
}

/** @param {Model} model @returns {number[]} live bytes of each process at the peak */
export function processPeaks(model) {
	return cached(model, "process peaks", () =>
		model.trace.processes.map((_, i) => groupCurve(model, "process", i, null)[Math.max(0, model.cells.peak)]),
	);
}

/** Resident bytes in each interval: what was measured last, since it is measured when it has grown. @param {Model} model @returns {Float64Array} NaN before the first one */
export function residentCurve(model) {
	let last = NaN;
	return cached(model, "resident", () =>
		model.cells.resident.map((value) => (last = Number.isNaN(value) ? last : value)),
	);
}

/** @param {Model} model @param {Grouping} by @param {number} key @param {Uint8Array | null} mask @returns {Float64Array} live bytes of a group at each bound */
export function groupCurve(model, by, key, mask) {
	const {birth, end, bytes} = model.cells,
		{order, begins} = orderCells(model, by);
	const steps = new Float64Array(model.last + 2);
	for (let at = begins[key]; at < begins[key + 1]; at++) {
		const i = order[at];
		if (mask && !mask[i]) continue;
		steps[birth[i]] += bytes[i];
		steps[end[i]] -= bytes[i];
	}
	addUp(steps);
	return steps.subarray(0, model.last + 1);
}

/** @param {ArrayLike<number>} curve @returns {{value: number, at: number}} the first largest value */
export function largestOf(curve) {
	let at = 0;
	for (let i = 1; i < curve.length; i++) if (curve[i] > curve[at]) at = i;
	return {value: curve[at], at};
}

/** @param {Model} model @param {Grouping} by @returns {Float64Array} for each group the most live bytes at a bound */
export function groupPeaks(model, by) {
	return cached(model, `peaks ${by}`, () => {
		const {count} = groupCells(model, by),
			{begins} = orderCells(model, by);
		const peaks = new Float64Array(count);
		for (let key = 0; key < count; key++) {
			if (begins[key] < begins[key + 1]) peaks[key] = largestOf(groupCurve(model, by, key, null)).value;
		}
		return peaks;
	});
}

/** Colours are for so many groups; the rest are others. */
export const SERIES_MAX = 6;

/** @param {Model} model @param {Grouping} by @returns {Series} the groups that had the most live bytes at a bound. Blocks from before the trace have no colour. */
export function findSeries(model, by) {
	return cached(model, `series ${by}`, () => {
		if (model.whole) return seriesInRange(model, model.whole, by);
		const peaks = groupPeaks(model, by);
		const isEarlier = (/** @type {number} */ key) =>
			by === "function" && (model.cells.frames[key].marks & MARK_EARLIER) !== 0;
		const present = [...peaks.keys()].filter((key) => peaks[key] > 0).sort((a, b) => peaks[b] - peaks[a] || a - b);
		const groups = present.filter((key) => !isEarlier(key)).slice(0, SERIES_MAX);
		model.cache.get(`places ${by}`)?.forEach((/** @type {number} */ key, /** @type {number} */ i) => {
			const at = groups.indexOf(key);
			if (at >= 0 && i < groups.length) [groups[i], groups[at]] = [groups[at], groups[i]];
		});
		const ofGroup = new Uint8Array(peaks.length).fill(SERIES_MAX);
		groups.forEach((key, i) => (ofGroup[key] = i));
		return {groups, ofGroup, others: present.length - groups.length};
	});
}

/** Groups keep their colours while a recording goes on. @param {Model} model @param {Model} before @param {Grouping} by */
export function keepColors(model, before, by) {
	const ids = findSeries(before, by).groups.map((key) => groupName(before, by, key).id);
	model.cache.set(
		`places ${by}`,
		ids.map((id) => findGroup(model, by, id)),
	);
}

/** @param {Model} model of a range @param {Model} whole @param {Grouping} by @returns {Series} the same colours as those of the whole run */
function seriesInRange(model, whole, by) {
	const {groups, others} = findSeries(whole, by),
		ofGroup = new Uint8Array(groupCells(model, by).count).fill(SERIES_MAX);
	groups.forEach((key, i) => {
		const own = findGroup(model, by, groupName(whole, by, key).id);
		if (own >= 0) ofGroup[own] = i;
	});
	return {groups, ofGroup, others};
}

/** @param {Model} model @param {Grouping} by @param {Filter[]} filters @returns {Float64Array[]} a curve for each colour, and the last one of the others */
export function seriesCurves(model, by, filters) {
	return cached(model, `curves ${by} ${JSON.stringify(filters)}`, () => {
		const {birth, end, bytes, count} = model.cells,
			{keys} = groupCells(model, by),
			{ofGroup} = findSeries(model, by),
			mask = filterCells(model, filters);
		const curves = Array.from({length: SERIES_MAX + 1}, () => new Float64Array(model.last + 2));
		for (let i = 0; i < count; i++) {
			if (mask && !mask[i]) continue;
			const steps = curves[ofGroup[keys[i]]];
			steps[birth[i]] += bytes[i];
			steps[end[i]] -= bytes[i];
		}
		curves.forEach(addUp);
		return curves.map((steps) => steps.subarray(0, model.last + 1));
	});
}

/** @param {Model} model @param {(i: number) => boolean} test of a cell @returns {Uint8Array} */
export function maskWhere(model, test) {
	const mask = new Uint8Array(model.cells.count);
	for (let i = 0; i < mask.length; i++) mask[i] = Number(test(i));
	return mask;
}

/** @param {Uint8Array | null} a @param {Uint8Array | null} b @returns {Uint8Array | null} cells that pass both */
export function bothMasks(a, b) {
	return a && b ? a.map((value, i) => value & b[i]) : (a ?? b);
}

/**
 * Facts of a set of cells, apart from the selection.
 * @param {Model} model @param {Uint8Array} mask
 * @returns {{made: number, neverFreed: number, most: number, mostAt: number, isMost: boolean}} `most` is at a bound; `isMost`: there cannot have been more inside an interval
 */
export function factsOf(model, mask) {
	const {birth, kind, bytes, count} = model.cells,
		earlier = earlierCells(model),
		begun = new Float64Array(model.last + 2);
	let made = 0,
		neverFreed = 0;
	for (let i = 0; i < count; i++) {
		if (!mask[i] || earlier?.[i]) continue;
		if (kind[i] !== FREED) neverFreed += bytes[i];
		if (birth[i] === 0) continue;
		begun[birth[i]] += bytes[i];
		made += bytes[i];
	}
	const curve = liveCurve(model, mask),
		{value, at} = largestOf(curve);
	const isMost = curve.every((live, i) => live + begun[i + 1] <= value);
	return {made, neverFreed, most: value, mostAt: at, isMost};
}

/** @param {Model} model @param {number} time @returns {number} the nearest bound */
export function nearestBound(model, time) {
	const {bounds} = model.cells;
	let low = 0,
		high = bounds.length - 1;
	while (high - low > 1) {
		const middle = (low + high) >> 1;
		if (bounds[middle] <= time) low = middle;
		else high = middle;
	}
	return time - bounds[low] <= bounds[high] - time ? low : high;
}

/** @param {Model} model @param {number} from @param {number} to bounds @returns {boolean} whether a gap of the trace touches this time */
export function touchesGap(model, from, to) {
	const {bounds} = model.cells;
	return (model.trace.gaps ?? []).some((gap) => gap.from_ns <= bounds[to] && gap.to_ns > bounds[from]);
}
