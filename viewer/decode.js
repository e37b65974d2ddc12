// SPDX-License-Identifier: MIT
// Bytes of cells to columns. README.md describes the bytes. They may be damaged: each index is checked here, once.
import {safeText} from "./hostile.js";

export const FREED = 0;
export const MARK_LIBRARY = 1,
	MARK_WORD = 2,
	MARK_EARLIER = 4;
/** How often a window of cells can be divided at most. */
const INTERVALS_MAX = 1024;
const MAGIC = "XHCELLS1";
const NOT_MEASURED = 0xffffffffffffffffn;

const VIEWS = /** @type {Record<string, any>} */ ({
	u8: Uint8Array,
	u16: Uint16Array,
	u32: Uint32Array,
	u64: BigUint64Array,
	i64: BigInt64Array,
});
const NARROW = /** @type {Record<string, any>} */ ({
	u8: Uint8Array,
	u16: Uint16Array,
	u32: Uint32Array,
	f64: Float64Array,
});
/** Name, what it has a value for, and the type that the engine reads. */
const COLUMNS = /** @type {[string, "cell" | "node" | "interval", string][]} */ ([
	["node", "cell", "u32"],
	["thread", "cell", "u32"],
	["heap", "cell", "u32"],
	["birth", "cell", "u16"],
	["end", "cell", "u16"],
	["kind", "cell", "u8"],
	["size", "cell", "u8"],
	["life", "cell", "u8"],
	["blocks", "cell", "f64"],
	["bytes", "cell", "f64"],
	["reallocs", "cell", "f64"],
	["temporaries", "cell", "f64"],
	["parent", "node", "u32"],
	["function", "node", "u32"],
	["line", "node", "u32"],
	["inlined", "node", "u8"],
	["asker", "node", "u32"],
	["stacks", "node", "u32"],
	["max_bytes", "interval", "f64"],
	["calls", "interval", "f64"],
	["resident", "interval", "f64"],
]);

/** @param {boolean} holds @param {string} text */
function expect(holds, text) {
	if (!holds) throw new Error(`these cells cannot be shown: ${text}`);
}

/** Members of JSON that are numbers end with their unit. */
const NUMBER_KEY = /(?:^|_)(?:bytes|blocks|count|events|ns|us|second)$/;

/** @param {string} text JSON, in which large numbers are texts of their digits @returns {any} with numbers */
export function readJson(text) {
	return JSON.parse(text, (key, value) =>
		typeof value === "string" && NUMBER_KEY.test(key) && /^-?\d+$/.test(value) ? Number(value) : value,
	);
}

/** @param {ArrayBuffer} buffer @returns {{head: any, base: number}} the JSON, and where columns begin */
function readHead(buffer) {
	expect(buffer.byteLength >= 16, "too short");
	const bytes = new Uint8Array(buffer);
	expect(String.fromCharCode(...bytes.subarray(0, 8)) === MAGIC, "another format");
	const size = new DataView(buffer).getUint32(8, true);
	expect(size % 8 === 0 && 16 + size <= buffer.byteLength, "cut short");
	const head = readJson(new TextDecoder().decode(bytes.subarray(16, 16 + size)));
	expect(head.schema === 1, `version ${Number(head.schema)}; this page reads version 1`);
	return {head, base: 16 + size};
}

/** @param {ArrayBuffer} buffer @param {number} base @param {any} row of `columns` @param {number} count @param {string} wanted type */
function readColumn(buffer, base, row, count, wanted) {
	const View = VIEWS[row?.type];
	expect(View && row.count === count && row.at >= 0 && row.at % 8 === 0, `column ${safeText(row?.name)}`);
	expect(base + row.at + count * View.BYTES_PER_ELEMENT <= buffer.byteLength, "cut short");
	const view = new View(buffer, base + row.at, count);
	const Narrow = NARROW[wanted];
	if (View === Narrow) return view;
	const column = new Narrow(count);
	for (let i = 0; i < count; i++) column[i] = view[i] === NOT_MEASURED ? NaN : Number(view[i]);
	return column;
}

/** @param {ArrayLike<number>} column @param {number} limit @param {string} name */
function expectBelow(column, limit, name) {
	for (let i = 0; i < column.length; i++) {
		if (!(column[i] < limit)) throw new Error(`these cells cannot be shown: ${name} of ${i}`);
	}
}

/** @param {string[]} words image, and last the full name of a function @returns {string} */
export function keyOf(words) {
	return `${words[0]}!${words.at(-1)}`;
}

/** @param {any[]} row @returns {Frame} */
export function readFrame(row) {
	const [image, short, full, file, marks] = row;
	return {
		image: safeText(image),
		short: safeText(short) || "?",
		full: safeText(full),
		file: safeText(file),
		marks: marks >>> 0,
		key: `${image}!${full}`,
	};
}

/** @param {Cells} cells @param {number} threads @param {number} heaps */
function checkIndexes(cells, threads, heaps) {
	const last = cells.bounds.length - 1;
	expectBelow(cells.node, cells.nodeCount, "node");
	expectBelow(cells.thread, threads, "thread");
	expectBelow(cells.heap, heaps, "heap");
	expectBelow(cells.birth, last + 1, "birth");
	expectBelow(cells.end, last + 2, "end");
	expectBelow(cells.kind, 3, "kind");
	expectBelow(cells.size, 65, "size");
	expectBelow(cells.life, 40, "life");
	expectBelow(cells.frame, cells.frames.length, "function");
	expectBelow(cells.asker, cells.nodeCount, "asker");
	for (let i = 0; i < cells.nodeCount; i++) expect(cells.parent[i] < i && cells.asker[i] <= i, `parent of ${i}`);
	for (let i = 0; i < cells.count; i++) expect(cells.birth[i] <= cells.end[i], `end of ${i}`);
	for (let i = 1; i <= last; i++) expect(cells.bounds[i] > cells.bounds[i - 1], `bound ${i}`);
}

/** Puts the cells in the order of their nodes: sums by node, which each picture makes, then go through memory once. @param {Cells} cells */
function sortCells(cells) {
	const {node, count, nodeCount} = cells;
	if (node.every((value, i) => !i || node[i - 1] <= value)) return; // as servers send them
	const next = new Uint32Array(nodeCount + 1),
		order = new Uint32Array(count);
	for (let i = 0; i < count; i++) next[node[i] + 1]++;
	for (let i = 0; i < nodeCount; i++) next[i + 1] += next[i];
	for (let i = 0; i < count; i++) order[next[node[i]]++] = i;
	for (const [name, of] of COLUMNS) {
		if (of !== "cell") continue;
		const column = /** @type {any} */ (cells)[name];
		/** @type {any} */ (cells)[name] = column.map(
			(/** @type {number} */ _, /** @type {number} */ i) => column[order[i]],
		);
	}
}

/** @param {ArrayBuffer} buffer @param {number} threads how many the trace has @param {number} heaps likewise @returns {Cells} in the order of nodes. Throws an Error with a line of text. */
export function decodeCells(buffer, threads, heaps) {
	const {head, base} = readHead(buffer);
	const bounds = Float64Array.from(head.bounds, Number);
	expect(bounds.length >= 2 && bounds.length <= INTERVALS_MAX + 1, "bounds");
	const counts = {cell: head.cell_count, node: head.node_count, interval: bounds.length - 1};
	/** @type {any} */
	const cells = {
		whole: Boolean(head.whole),
		bounds,
		peak: head.peak >= 0 && head.peak < bounds.length ? head.peak : -1,
		count: counts.cell,
		nodeCount: counts.node,
		lumpedBytes: head.lumped_bytes || 0,
		lumpedStacks: head.lumped_stacks || 0,
		lumpedFunctions: head.lumped_functions || 0,
		plainBytes: head.plain_bytes || 0,
		frames: head.functions.map(readFrame),
	};
	for (const [name, of, type] of COLUMNS) {
		const row = head.columns.find((/** @type {any} */ column) => column.name === name);
		cells[name] = readColumn(buffer, base, row, counts[of], type);
	}
	cells.parent = Int32Array.from(cells.parent, (value) => value - 1);
	cells.frame = cells.function;
	cells.maxBytes = cells.max_bytes;
	cells.isRounded =
		cells.bytes.reduce((/** @type {number} */ sum, /** @type {number} */ value) => sum + value, 0) >
		Number.MAX_SAFE_INTEGER;
	checkIndexes(cells, threads, heaps);
	sortCells(cells);
	return cells;
}
