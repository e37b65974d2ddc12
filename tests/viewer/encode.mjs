// SPDX-License-Identifier: MIT
// Writes the bytes that viewer/README.md describes, from single blocks. It is written apart from the page's reader.
import {gzipSync} from "node:zlib";

const WIDTHS = {u8: 1, u16: 2, u32: 4, u64: 8};
const PUT = {
	u8: (view, at, value) => view.setUint8(at, Number(value)),
	u16: (view, at, value) => view.setUint16(at, Number(value), true),
	u32: (view, at, value) => view.setUint32(at, Number(value), true),
	u64: (view, at, value) => view.setBigUint64(at, BigInt(value), true),
};

const padded = (size) => (size + 7) & ~7;

/** The first moment behind a time: how many bounds are before it. */
export function momentOf(bounds, time) {
	let moment = 0,
		high = bounds.length;
	while (moment < high) {
		const middle = (moment + high) >> 1;
		if (bounds[middle] < time) moment = middle + 1;
		else high = middle;
	}
	return moment;
}

export const sizeClass = (size) => (size === 0 ? 0 : Math.floor(Math.log2(size)) + 1);

export function lifeClass(ns) {
	let limit = 100,
		life = 0;
	for (; ns >= limit; life++)
		limit = life % 2 ? 10 ** (2 + (life + 1) / 2) : Math.floor(10 ** (2 + life / 2) * Math.sqrt(10));
	return life;
}

/** Blocks {node, thread, heap, size, begin, end, kind, isRealloc, isTemporary} become cells; begin -1 is before the trace. */
export function cellsOf(blocks, bounds) {
	const cells = new Map();
	for (const block of blocks) {
		const birth = momentOf(bounds, block.begin);
		const end = block.kind === 1 ? bounds.length : Math.max(birth, momentOf(bounds, block.end));
		if (birth >= bounds.length || end === 0) continue;
		const keys = [
			block.node,
			block.thread,
			block.heap,
			birth,
			end,
			block.kind,
			sizeClass(block.size),
			lifeClass(block.end - Math.max(0, block.begin)),
		];
		const cell = cells.get(keys.join()) ?? {keys, blocks: 0n, bytes: 0n, reallocs: 0n, temporaries: 0n};
		cell.blocks++;
		cell.bytes += BigInt(block.size);
		cell.reallocs += BigInt(block.isRealloc ?? 0);
		cell.temporaries += BigInt(block.isTemporary ?? 0);
		cells.set(keys.join(), cell);
	}
	return [...cells.values()];
}

function narrowest(values) {
	let most = 0n;
	for (const value of values) if (BigInt(value) > most) most = BigInt(value);
	return most < 256n ? "u8" : most < 65536n ? "u16" : most < 4294967296n ? "u32" : "u64";
}

/** @returns {Buffer} a whole answer of `cells` */
export function encodeCells({
	blocks,
	nodes,
	functions,
	bounds,
	peak = -1,
	intervals = {},
	lumpedBytes = 0,
	lumpedStacks = 0,
	whole = true,
}) {
	const cells = cellsOf(blocks, bounds),
		n = bounds.length - 1;
	const key = (index) => cells.map((cell) => cell.keys[index]);
	const of = (name) => cells.map((cell) => cell[name]);
	const columns = {
		node: key(0),
		thread: key(1),
		heap: key(2),
		birth: key(3),
		end: key(4),
		kind: key(5),
		size: key(6),
		life: key(7),
		blocks: of("blocks"),
		bytes: of("bytes"),
		reallocs: of("reallocs"),
		temporaries: of("temporaries"),
		parent: nodes.map((node) => node.parent + 1),
		function: nodes.map((node) => node.function),
		line: nodes.map((node) => node.line ?? 0),
		inlined: nodes.map((node) => node.inlined ?? 0),
		asker: nodes.map((node, i) => node.asker ?? i),
		stacks: nodes.map((node) => node.stacks ?? 0),
		max_bytes: intervals.max_bytes ?? new Array(n).fill(0),
		calls: intervals.calls ?? new Array(n).fill(0),
		resident: intervals.resident ?? new Array(n).fill(0xffffffffffffffffn),
	};
	let at = 0;
	const rows = Object.entries(columns).map(([name, values]) => {
		const row = {name, type: narrowest(values), count: values.length, at};
		at += padded(WIDTHS[row.type] * row.count);
		return row;
	});
	const head = {
		schema: 1,
		whole,
		bounds,
		peak,
		cell_count: cells.length,
		node_count: nodes.length,
		lumped_bytes: lumpedBytes,
		lumped_stacks: lumpedStacks,
		functions,
		columns: rows,
	};
	const json = Buffer.from(JSON.stringify(head));
	const size = padded(json.length),
		bytes = Buffer.alloc(16 + size + at, 0);
	bytes.write("XHCELLS1", "latin1");
	bytes.writeUInt32LE(size, 8);
	bytes.fill(" ", 16, 16 + size);
	json.copy(bytes, 16);
	const view = new DataView(bytes.buffer, bytes.byteOffset + 16 + size);
	for (const row of rows)
		columns[row.name].forEach((value, i) => PUT[row.type](view, row.at + i * WIDTHS[row.type], value));
	return bytes;
}

/** @returns {string} what the self-contained file has inside: base64 of gzip */
export function encodeFile(traces) {
	const count = Buffer.alloc(4);
	count.writeUInt32LE(traces.length);
	const parts = [count];
	let size = 4;
	const add = (part, isAligned) => {
		if (isAligned) {
			parts.push(Buffer.alloc(padded(size) - size));
			size = padded(size);
		}
		parts.push(part);
		size += part.length;
	};
	for (const {trace, cells} of traces) {
		const json = Buffer.from(JSON.stringify(trace)),
			sizes = Buffer.alloc(8);
		sizes.writeUInt32LE(json.length);
		sizes.writeUInt32LE(cells.length, 4);
		add(sizes, false);
		add(json, true);
		add(cells, true);
	}
	return gzipSync(Buffer.concat(parts), {level: 9}).toString("base64");
}

/** @returns {number} the sum of a column over selected cells */
export function sumHits(hits, column) {
	return hits.reduce((sum, hit, i) => sum + hit * column[i], 0);
}
