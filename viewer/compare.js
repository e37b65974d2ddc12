// SPDX-License-Identifier: MIT
// The engine of comparing: two sets of blocks, also of two traces, by names of functions and paths, as `xheap diff` does. Nothing here knows the document.
import {cellWeights, filterCells, groupCells, groupName, makeModel, nodeSums, selectCells, sumGroups} from "./cells.js";
import {safeText} from "./hostile.js";
import {choose, placeOf} from "./picture.js";
import {sumInclusive} from "./table.js";

/** What a filter is about that is something else in another trace. */
const OF_ONE_TRACE = ["thread", "process", "heap"];

/** Gives frames of another trace's only program the name that this one's has, as `xheap diff` does. @param {Cells} cells @param {Trace} trace theirs @param {Model} own @returns {string} what to say of it */
export function matchPrograms(cells, trace, own) {
	const [names, ownNames] = [trace, own.trace].map(({processes}) => [...new Set(processes.map(({name}) => name))]),
		[[name], [ownName]] = [names, ownNames],
		isOf = (/** @type {string} */ image) => (/** @type {Frame} */ frame) => frame.key.startsWith(`${image}!`);
	if (names.some((other) => ownNames.includes(other))) return "";
	if (
		names.length > 1 ||
		ownNames.length > 1 ||
		own.cells.frames.some(isOf(name)) ||
		cells.frames.some(isOf(ownName))
	)
		return "A and B are of different programs: only frames of common libraries match.";
	for (const frame of cells.frames.filter(isOf(name))) {
		frame.image = safeText(ownName);
		// Code without a name is another one in another file.
		if (!frame.full.startsWith("+0x")) frame.key = ownName + frame.key.slice(name.length);
	}
	return `Matched as one program: ${safeText(ownName)}, ${safeText(name)}.`;
}

/** @param {Model} model @param {When} selection @param {Filter[]} filters @param {boolean} isOther whether the filters were made in another trace */
export function makeSide(model, selection, filters, isOther) {
	const choice = choose(model, selection),
		own = filters.filter(({by}) => !isOther || !OF_ONE_TRACE.includes(by)),
		mask = filterCells(model, own);
	return {
		model,
		choice,
		mask,
		...placeOf(model, choice),
		selected: selectCells(model, choice, mask),
		isWithout: own.length < filters.length,
	};
}

/** @param {Side | Run} run @param {Grouping | "inclusive"} by */
function sumRun({model, choice, mask, selected}, by) {
	const isInclusive = by === "inclusive",
		sums = sumGroups(model, choice, selected, groupCells(model, isInclusive ? "stack" : by), mask);
	return isInclusive ? sumInclusive(model, sums) : sums;
}

/** Quantiles 0.975 of Student's distribution, by degrees of freedom from 1; the last is for more. */
const STUDENT = [
	...[12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12],
	...[2.11, 2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042, 1.96],
];

/** @param {number[]} numbers @returns {[number, number]} the mean, and the sample variance */
export function meanOf(numbers) {
	const mean = numbers.reduce((sum, number) => sum + number, 0) / numbers.length,
		squares = numbers.reduce((sum, number) => sum + (number - mean) ** 2, 0);
	return [mean, squares / (numbers.length - 1 || 1)];
}

/** @param {number[][]} sides numbers of the runs of A, and of B @returns {boolean} whether zero lies in Welch's 95 % interval of the change, as in `xheap diff`: a single run has the variance of the other side */
export function isInSpread(sides) {
	const [a, b] = sides.map(meanOf),
		counts = sides.map(({length}) => length),
		hasSingle = counts.includes(1),
		variances = [a, b].map(([, variance], i) => (counts[i] > 1 ? variance / counts[i] : [b, a][i][1])),
		sum = variances[0] + variances[1],
		weighted = variances.reduce((all, variance, i) => all + variance ** 2 / (counts[i] - 1), 0),
		freedom = Math.floor(hasSingle ? counts[0] + counts[1] - 2 : weighted && sum ** 2 / weighted) || Infinity,
		change = b[0] - a[0];
	return change !== 0 && Math.abs(change) <= Math.sqrt(sum) * (STUDENT[freedom - 1] ?? STUDENT[STUDENT.length - 1]);
}

/** @param {Side} a @param {Side} b @param {Grouping | "inclusive"} by @returns {ComparedRow[]} of all groups that either has: means of the runs */
export function compareRows(a, b, by) {
	/** @type {Map<string, ComparedRow>} */
	const rows = new Map(),
		grouping = by === "inclusive" ? "function" : by;
	[a, b].forEach(({runs}, i) =>
		runs.forEach((run, number) => {
			const {bytes, blocks} = sumRun(run, by);
			for (let key = 0; key < bytes.length; key++) {
				if (!blocks[key]) continue;
				const {id, name, detail} = groupName(run.model, grouping, key),
					row = rows.get(id) ?? {
						...{id, name, detail, bytes: [0, 0], blocks: [0, 0]},
						runs: [a, b].map((side) => side.runs.map(() => 0)),
					};
				row.runs[i][number] += bytes[key];
				row.bytes[i] += bytes[key] / runs.length;
				row.blocks[i] += blocks[key] / runs.length;
				rows.set(id, row);
			}
		}),
	);
	return [...rows.values()];
}

/** Parts of a frame: what both have, what only A has more, what only B has more. */
const PARTS = 3;

/** The stacks of all runs, by names. @param {Model[]} models */
function joinStacks(models) {
	const frames = /** @type {Model["cells"]["frames"]} */ ([]),
		[parent, frame, line] = [0, 0, 0].map(() => /** @type {number[]} */ ([])),
		frameOf = new Map(),
		nodeOf = new Map();
	const ofNodes = models.map(({cells}) => {
		const ofFrame = cells.frames.map((row) => {
				if (!frameOf.has(row.key)) frameOf.set(row.key, frames.push(row) - 1);
				return frameOf.get(row.key);
			}),
			ofNode = new Uint32Array(cells.nodeCount);
		for (let node = 0; node < cells.nodeCount; node++) {
			const above = cells.parent[node] < 0 ? -1 : ofNode[cells.parent[node]],
				name = `${above} ${ofFrame[cells.frame[node]]}`;
			if (!nodeOf.has(name)) {
				nodeOf.set(name, parent.push(above) - 1);
				frame.push(ofFrame[cells.frame[node]]);
				line.push(cells.line[node]);
			}
			ofNode[node] = nodeOf.get(name);
		}
		return ofNode;
	});
	const nodeCount = parent.length,
		count = nodeCount * PARTS,
		values = new Float64Array(count),
		parts = Uint8Array.from({length: PARTS}, (_, i) => i);
	const cells = {
		...{
			whole: true,
			bounds: Float64Array.of(-1, 0),
			peak: -1,
			count,
			nodeCount,
			frames,
			bytes: values,
			blocks: values,
		},
		node: Uint32Array.from(values, (_, i) => Math.floor(i / PARTS)),
		heap: Uint32Array.from(values, (_, i) => i % PARTS),
		...{parent: Int32Array.from(parent), frame: Uint32Array.from(frame), line: Uint32Array.from(line)},
		asker: Uint32Array.from(parent, (_, i) => i),
		...{inlined: new Uint8Array(nodeCount), stacks: new Uint32Array(nodeCount)},
		...{lumpedStacks: models.reduce((sum, {cells: {lumpedStacks}}) => sum + lumpedStacks, 0)},
	};
	const model = makeModel(/** @type {any} */ (cells), {
		traces: [],
		threads: [],
		processes: [],
		heaps: [...parts].map(() => ({})),
	});
	model.cache.set("series heap", {groups: [...parts], ofGroup: parts, others: 0});
	return {models, model, ofNodes};
}

/**
 * One model of both, of means of runs: a stack is as wide as its larger side, and its bytes are divided into what both
 * have, and what A or B has more. So sums of each side stay exact wherever stacks are added up.
 * @param {Side} a @param {Side} b @param {Measure} measure @param {boolean} isFolded
 * @returns {Model} its groups "heap" are these parts; the next call changes it
 */
export function compareModel(a, b, measure, isFolded) {
	const known = b.model.cache.get("joined"),
		models = [a, b].flatMap(({runs}) => runs.map(({model}) => model)),
		isKnown = models.length === known?.models.length && models.every((model, i) => model === known.models[i]),
		joined = isKnown ? known : joinStacks(models),
		{bytes: values, nodeCount} = joined.model.cells;
	b.model.cache.set("joined", joined);
	let place = 0;
	const sums = [a, b].map(({runs}) => {
		const ofSide = new Float64Array(nodeCount);
		for (const {model, selected} of runs) {
			const ofNode = joined.ofNodes[place++];
			nodeSums(model, selected.hits, cellWeights(model, measure), isFolded).forEach(
				(sum, node) => (ofSide[ofNode[node]] += sum / runs.length),
			);
		}
		return ofSide;
	});
	for (let node = 0; node < nodeCount; node++) {
		const [first, second] = [sums[0][node], sums[1][node]];
		values.set([Math.min(first, second), Math.max(0, first - second), Math.max(0, second - first)], node * PARTS);
	}
	return joined.model;
}

/** @param {ArrayLike<number> | null} parts of a frame @returns {[number, number]} of A and B */
export function sidesOf(parts) {
	return parts ? [parts[0] + parts[1], parts[0] + parts[2]] : [0, 0];
}
