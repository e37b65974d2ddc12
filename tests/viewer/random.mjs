// SPDX-License-Identifier: MIT
// Random blocks for the tests of the engine. The same seed gives the same blocks.

/** @returns {() => number} from 0 to 1: mulberry32 */
export function randomFrom(seed) {
	return () => {
		seed = (seed + 0x6d2b79f5) | 0;
		let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
		t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
		return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
	};
}

const DURATION = 1_000_000_000;

export function makeScene(seed, blockCount = 3000) {
	const random = randomFrom(seed),
		below = (limit) => Math.floor(random() * limit);
	const functions = Array.from({length: 20}, (_, i) => [
		`lib${i % 4}.so`,
		`f${i}`,
		`f${i}(int)`,
		i % 3 ? `f${i}.c` : "",
		i % 5 ? 0 : 1,
	]);
	functions.push(["", "[smaller stacks]", "[smaller stacks]", "", 2]);
	const nodes = [{parent: -1, function: 0}];
	while (nodes.length < 120) {
		const parent = below(nodes.length + 1) - 1;
		const isLump = random() < 0.05;
		nodes.push({parent, function: isLump ? 20 : below(20), line: below(100), stacks: isLump ? 1 + below(9) : 0});
	}
	// A culled run: the asker of a node is one of its callers, which stays the same between the two.
	nodes.forEach(
		(node, i) => (node.asker = random() < 0.3 && node.parent >= 0 ? (nodes[node.parent].asker ?? node.parent) : i),
	);
	const trace = {
		schema: 1,
		traces: [{name: "made.xht"}],
		path: "made.xht",
		command: "made",
		duration_ns: DURATION,
		processes: [
			{pid: 1, name: "one", begin_ns: 0, end_ns: 400_000_000},
			{pid: 2, name: "two", begin_ns: 0},
		],
		threads: [0, 0, 1, 1, 1].map((process, i) => ({process, tid: 10 + i, name: `t${i}`})),
		heaps: [
			{process: 0, name: "malloc", handle: "0x0"},
			{process: 1, name: "pool", handle: "0x1"},
		],
		gaps: [],
		marks: [],
		state: [],
		findings: [],
		totals: {},
	};
	const bounds = [...new Set([-1, DURATION, ...Array.from({length: 30}, () => below(DURATION / 1e7) * 1e7)])].sort(
		(a, b) => a - b,
	);
	// Times often fall onto bounds, and onto the nanosecond behind one.
	const time = () => (random() < 0.3 ? Math.max(0, bounds[below(bounds.length)] + below(3) - 1) : below(DURATION));
	const blocks = Array.from({length: blockCount}, () => {
		const thread = below(5),
			begin = random() < 0.05 ? -1 : Math.min(time(), thread < 2 ? 399_000_000 : DURATION);
		const last = thread < 2 ? 400_000_000 : DURATION,
			isFreed = random() < 0.8;
		const end = isFreed
			? Math.min(last, Math.max(begin, 0) + (random() < 0.5 ? below(1000) : below(DURATION)))
			: last;
		return {
			node: below(nodes.length),
			thread,
			heap: below(2),
			size: random() < 0.1 ? below(2) : below(1 << below(24)),
			begin,
			end,
			kind: isFreed ? 0 : thread < 2 ? 2 : 1,
			isRealloc: below(2),
			isTemporary: Number(random() < 0.2),
		};
	});
	return {functions, nodes, blocks, bounds, trace, random, below};
}
