// SPDX-License-Identifier: MIT
// Made traces of the shapes that a page must show: a server with threads, growth and recursion; a build of processes; losses; hostile names.
import {randomFrom} from "./random.mjs";
import {encodeCells} from "./encode.mjs";

const SECOND = 1e9;

/** A tree of calls from paths of words "image!name". */
class Calls {
	constructor() {
		this.functions = [];
		this.nodes = [];
		this.found = new Map();
		this.indexes = new Map();
	}

	function(word, file, marks) {
		if (!this.indexes.has(word)) {
			const [image, ...name] = word.split("!"),
				full = name.join("!");
			this.indexes.set(
				word,
				this.functions.push([image, full.replace(/\(.*\)$/, ""), full, file ?? "", marks ?? 0]) - 1,
			);
		}
		return this.indexes.get(word);
	}

	/** The last frames that are in `culled` are of allocators. */
	path(words, culled = 1) {
		let node = -1;
		words.forEach((word, i) => {
			const key = `${node} ${word}`,
				isLibrary = /^(libc|libstdc|libpython)/.test(word);
			if (!this.found.has(key))
				this.found.set(
					key,
					this.nodes.push({
						parent: node,
						function: this.function(
							word,
							isLibrary ? "" : `src/${word.split("!")[1].split(/[(:]/)[0]}.cc`,
							Number(isLibrary),
						),
						line: 10 + i * 7,
					}) - 1,
				);
			node = this.found.get(key);
		});
		let asker = node;
		for (let i = 0; i < culled; i++) {
			if (this.nodes[asker].parent < 0) break;
			asker = this.nodes[asker].parent;
		}
		for (let at = node; at !== asker; at = this.nodes[at].parent) this.nodes[at].asker = asker;
		this.nodes[node].asker = asker;
		return node;
	}

	/** The stack of a node as a finding has it, from the function that asked. */
	stackOf(node) {
		const stack = [];
		for (let at = this.nodes[node].asker; at >= 0; at = this.nodes[at].parent) {
			const [image, , full] = this.functions[this.nodes[at].function];
			stack.unshift([image, full]);
		}
		return stack;
	}
}

const START = [
	"app!_start",
	"libc.so.6!__libc_start_main",
	"libc.so.6!__libc_start_call_main",
	"app!main(int, char**)",
];
const THREAD = [
	"libc.so.6!__clone3",
	"libc.so.6!start_thread",
	"libstdc++.so.6!std::thread::_Invoker::operator()",
	"app!Worker::run()",
];
const NEW = ["libstdc++.so.6!operator new(unsigned long)", "libc.so.6!malloc"];

function boundsOf(duration, peak, n = 256) {
	const bounds = Array.from({length: n + 1}, (_, i) => Math.round((duration * i) / n));
	bounds[0] = -1;
	const at = bounds.reduce(
		(best, bound, i) => (i > 0 && i < n && Math.abs(bound - peak) < Math.abs(bounds[best] - peak) ? i : best),
		1,
	);
	bounds[at] = peak;
	return {bounds, peak: at};
}

/** The exact peak of single blocks. */
function peakOf(blocks) {
	const steps = blocks
		.flatMap((block) => [[block.begin, block.size], ...(block.kind === 1 ? [] : [[block.end, -block.size]])])
		.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
	let live = 0,
		best = {bytes: 0, at: 0};
	for (const [time, size] of steps) if ((live += size) > best.bytes) best = {bytes: live, at: time};
	return best;
}

const NOT_MEASURED = 0xffffffffffffffffn;

function intervalsOf(blocks, bounds, residentOf) {
	const n = bounds.length - 1,
		calls = new Array(n).fill(0),
		max = new Array(n).fill(0);
	const interval = (time) => {
		let low = 0,
			high = n;
		while (high - low > 1) {
			const middle = (low + high) >> 1;
			if (bounds[middle] < time) low = middle;
			else high = middle;
		}
		return low;
	};
	const steps = blocks
		.flatMap((block) => [
			[Math.max(0, block.begin), block.size],
			...(block.kind === 1 ? [] : [[block.end, -block.size]]),
		])
		.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
	let live = 0,
		last = 0;
	for (const [time, size] of steps) {
		const i = interval(time);
		for (; last < i; last++) max[last + 1] = Math.max(max[last + 1], live);
		live += size;
		max[i] = Math.max(max[i], live);
		calls[i]++;
	}
	for (; last < n - 1; last++) max[last + 1] = Math.max(max[last + 1], live);
	return {
		calls,
		max_bytes: max,
		resident: residentOf ? max.map((value, i) => (i % 5 ? NOT_MEASURED : BigInt(Math.round(residentOf(value, i / n))))) : undefined,
	};
}

function finish({name, command, calls, blocks, duration, trace, residentOf}) {
	const best = peakOf(blocks),
		{bounds, peak} = boundsOf(duration, best.at),
		totals = {
			total_count: 0,
			total_bytes: 0,
			outstanding_count: 0,
			outstanding_bytes: 0,
			peak_bytes: best.bytes,
			peak_at_us: best.at / 1000,
		};
	for (const block of blocks) {
		totals.total_count++;
		totals.total_bytes += block.size;
		if (block.kind) {
			totals.outstanding_count++;
			totals.outstanding_bytes += block.size;
		}
	}
	const isLumped = (node) => calls.nodes[node].stacks > 0,
		lumps = calls.nodes.filter((node) => node.stacks && calls.functions[node.function][4]);
	const lumpedBytes = blocks.reduce((sum, block) => sum + (isLumped(block.node) ? block.size : 0), 0),
		lumpedStacks = lumps.reduce((sum, node) => sum + node.stacks, 0);
	const scene = {
		blocks,
		nodes: calls.nodes,
		functions: calls.functions,
		bounds,
		peak,
		lumpedBytes,
		lumpedStacks,
		intervals: intervalsOf(blocks, bounds, residentOf),
	};
	const whole = {
		schema: 1,
		traces: [{name}],
		path: name,
		command,
		duration_ns: duration,
		events: blocks.length * 2 - totals.outstanding_count,
		heaps: [{process: 0, name: "malloc", handle: "0x0"}],
		gaps: [],
		marks: [],
		state: [],
		findings: [],
		sample_bytes: 0,
		...trace,
		totals,
	};
	return {trace: whole, cells: encodeCells(scene), scene};
}

/** A server: a cache that grows, requests that come and go, a parser that calls itself, a load at the end of which is the peak. */
export function makeServer({count = 60000, extra = null, name = "server.xht"} = {}) {
	const random = randomFrom(7),
		calls = new Calls(),
		blocks = [],
		duration = 20 * SECOND;
	const below = (limit) => Math.floor(random() * limit);
	const deep = Array.from({length: 14}, (_, i) => `app!Json::${["value", "array", "object"][i % 3]}(Reader&)`);
	const places = {
		config: calls.path(
			[...START, "app!Config::load(std::string)", ...deep.slice(0, 5), "app!Json::string(Reader&)", ...NEW],
			2,
		),
		cache: calls.path(
			[...THREAD, "app!Server::serve(Request&)", "app!Cache::insert(Key, Value)", "app!Cache::grow()", ...NEW],
			2,
		),
		table: calls.path([
			...THREAD,
			"app!Server::serve(Request&)",
			"app!Cache::insert(Key, Value)",
			"libc.so.6!calloc",
		]),
		body: calls.path(
			[
				...THREAD,
				"app!Server::serve(Request&)",
				"app!Request::read_body(Socket&)",
				"libstdc++.so.6!std::string::reserve(unsigned long)",
				...NEW,
			],
			3,
		),
		parse: calls.path(
			[
				...THREAD,
				"app!Server::serve(Request&)",
				"app!Json::parse(std::string_view)",
				...deep,
				"app!Json::string(Reader&)",
				...NEW,
			],
			2,
		),
		number: calls.path([
			...THREAD,
			"app!Server::serve(Request&)",
			"app!Json::parse(std::string_view)",
			...deep.slice(0, 8),
			"app!Json::number(Reader&)",
			"libc.so.6!realloc",
		]),
		image: calls.path([
			...THREAD,
			"app!Server::serve(Request&)",
			"app!Image::decode(Bytes)",
			"libpng16.so.16!png_read_row",
			"libz.so.1!inflateInit2_",
			"libc.so.6!malloc",
		]),
		log: calls.path([...START, "app!Log::flush()", "app!Log::write(std::string_view)", ...NEW], 2),
		word: -1,
	};
	places.word = calls.nodes.push({parent: -1, function: calls.function("![no stack]", "", 2)}) - 1;
	const small =
		calls.nodes.push({
			parent: calls.nodes.findIndex((node) => calls.functions[node.function][2] === "Server::serve(Request&)"),
			function: calls.function("![smaller stacks]", "", 2),
			stacks: 41,
		}) - 1;
	const lumped = calls.nodes.push({parent: small, function: calls.function("app!Cache::grow()"), stacks: 41}) - 1;
	const add = (node, thread, size, begin, life, more = {}) => {
		const end = begin + life,
			isOpen = end >= duration || life === Infinity;
		blocks.push({
			node,
			thread,
			heap: 0,
			size,
			begin: Math.round(begin),
			end: Math.round(isOpen ? duration : end),
			kind: isOpen ? 1 : 0,
			...more,
		});
	};
	for (let i = 0; i < 200; i++) add(places.config, 0, 200 + below(3000), 1e6 + i * 5e5, i % 9 ? Infinity : 1e7);
	for (let i = 0; i < count; i++) {
		const begin = 2e8 + random() * (duration - 3e8),
			thread = 1 + below(3),
			busy = begin > 13.2 * SECOND && begin < 15.1 * SECOND;
		add(places.body, thread, 500 + below(8000), begin, 1e5 + random() * 3e7, {isTemporary: Number(random() < 0.2)});
		add(places.parse, thread, 16 + below(200), begin + 100, random() * 5e6);
		if (i % 3 === 0) add(places.number, thread, 8 << below(6), begin + 300, 500 + random() * 1e6, {isRealloc: 1});
		if (i % 12 === 0) add(places.cache, thread, 900 + below(1200), begin, Infinity);
		if (i % 40 === 0) add(places.table, thread, 4096, begin, 3e9 * random());
		if (i % 30 === 0 || (busy && i % 3 === 0))
			add(places.image, thread, 20000 + below(20000), begin, busy ? 15.12 * SECOND - begin : 4e7 * random());
		if (i % 50 === 0) add(places.log, 0, 1024, begin, 2e8);
		if (i % 400 === 0) add(places.word, 2, 64, begin, 1e9);
		if (i % 200 === 0) add(lumped, thread, 700, begin, 2e9 * random());
	}
	extra?.(calls, add, duration, blocks);
	const key = ["app", "Cache::grow()"];
	return finish({
		name,
		command: "./server --port 8080 --threads 3",
		calls,
		blocks,
		duration,
		residentOf: (bytes, at) => 9e6 + bytes * 1.15 + at * 4e6,
		trace: {
			processes: [{pid: 4711, name: "server", begin_ns: 0, end_ns: duration, end: "exit"}],
			threads: [0, 1, 2, 3].map((i) => ({process: 0, tid: 4711 + i, name: i ? "worker" : "server"})),
			answer: {
				peak_function: ["libz.so.1", "inflateInit2_"],
				peak_share: 0.71,
				peak_process: 0,
				growth: {function: key, bytes_per_second: 394240, from_ns: 2e9, to_ns: 19e9},
			},
			resident: {
				process: 0,
				at_us: 15.1e6,
				bytes: 86e6,
				read_bytes: 86e6,
				live_bytes: 61e6,
				rounding_bytes: 2.1e6,
				free_bytes: 7.9e6,
				others: {files: 9e6, recorder: 4.5e6, other: 1.5e6},
			},
			state: [{kind: "symbols", text: "names lack for 2 images", command: `xheap symbols ${name}`}],
			marks: [
				{at_ns: 5e9, kind: "user", text: "ready"},
				{at_ns: 5.01e9, kind: "loss", text: "7 events are lost"},
				{at_ns: 20e9, kind: "process_killed", text: "app 4711: signal 9"},
			],
			findings: [
				{
					kind: "growth",
					text: "Cache::grow grows by 385 KiB/s",
					evidence: "5,000 blocks more than at the beginning; none of the old ones is freed.",
					command: `xheap heap ${name} -window AIFO 2s 19s`,
					select: {from_ns: 2e9, to_ns: 19e9, classes: ["AIFO"]},
					function: key,
					stack: [["app", "lumped"], key],
				},
				{
					kind: "peak",
					text: "inflateInit2_ holds 71 % of the peak",
					evidence: "in 1,983 blocks.",
					command: `xheap heap ${name} -stacks sp -top 3`,
					select: {at_ns: 15e9},
					function: ["libz.so.1", "inflateInit2_"],
					stack: calls.stackOf(places.image),
				},
				{
					kind: "short_lived",
					text: "38 % of all blocks live for less than 1 ms",
					evidence: "most of them are from Json::number.",
					command: `xheap heap ${name} -stacks stc -lifetime 0 1ms`,
				},
				{
					kind: "reallocs",
					text: "Json::number grows blocks by realloc",
					evidence: "in 20,000 steps, which copy 10.2 MiB.",
					command: `xheap heap ${name} -chains`,
				},
				{
					kind: "pinned",
					text: "Cache::grow keeps pages that are nearly empty",
					evidence: "120.0 KiB of them for 15.4 KiB.",
					command: `xheap heap ${name} -map -at 15s`,
					select: {at_ns: 15e9},
					function: key,
				},
			],
		},
	});
}

/** The server with a gap in which calls are lost. */
export function makeLossy() {
	const made = makeServer({count: 6000, name: "lossy.xht"});
	Object.assign(made.trace, {
		gaps: [{from_ns: 3e9, to_ns: 8e9, count: 306000}],
		state: [
			{kind: "losses", count: 306000, text: "306,000 calls are lost in one gap", command: "xheap info lossy.xht"},
			{kind: "unknown_frees", count: 12, text: "12 frees of unknown blocks", command: "xheap info lossy.xht"},
		],
	});
	made.trace.answer.growth = null;
	return made;
}

/** The server, of which a sample was recorded. */
export function makeSample() {
	const made = makeServer({count: 3000, name: "sample.xht"});
	Object.assign(made.trace, {
		sample_bytes: 8192,
		state: [
			{
				kind: "sample",
				text: "a sample of one byte in 8 KiB: numbers are estimates",
				command: "xheap info sample.xht",
			},
		],
	});
	return made;
}

/** A build: processes that end with all their blocks. */
export function makeBuild({processes = 25} = {}) {
	const random = randomFrom(11),
		calls = new Calls(),
		blocks = [],
		duration = 20 * SECOND,
		rows = [],
		threads = [];
	const below = (limit) => Math.floor(random() * limit);
	for (let i = 0; i < processes; i++) {
		const begin = Math.round((duration * i) / (processes + 4)),
			end = Math.min(duration, Math.round(begin + duration / 6)),
			name = i === processes - 1 ? "ld.bfd" : "cc1plus";
		rows.push({pid: 1900 + i * 7, name, begin_ns: begin, end_ns: end, end: "exit"});
		threads.push({process: i, tid: 1900 + i * 7, name});
		for (let j = 0; j < 2500; j++) {
			const words = [`${name}!_start`, "libc.so.6!__libc_start_main", `${name}!main`, `${name}!toplev::main`],
				shape = Math.floor(below(100) * random());
			for (let k = 0; k < 2 + (shape % 9); k++)
				words.push(
					`${name}!${["parse", "expr", "type", "decl", "lex", "gimplify", "fold"][(shape >> (k % 5)) % 7]}_${(shape + k) % 3}`,
				);
			const node = calls.path([...words, "libc.so.6!malloc"]),
				at = begin + random() * (end - begin),
				isFreed = random() < 0.7;
			blocks.push({
				node,
				thread: i,
				heap: 0,
				size: 16 << below(11),
				begin: Math.round(at),
				end: Math.round(isFreed ? Math.min(end, at + random() * 1e9) : end),
				kind: isFreed ? 0 : 2,
			});
		}
	}
	return finish({
		name: "build.xht",
		command: "make -s -j2",
		calls,
		blocks,
		duration,
		residentOf: (bytes) => bytes * 5 + 2e7,
		trace: {
			processes: rows,
			threads,
			heaps: rows.map((row, i) => ({process: i, name: "malloc", handle: "0x0"})),
			marks: rows.flatMap((row) => [
				{at_ns: row.begin_ns, kind: "process_begin", text: ""},
				{at_ns: row.end_ns, kind: "process_end", text: ""},
			]),
			answer: {peak_function: ["cc1plus", "parse_0"], peak_share: 0.12, peak_process: 3, growth: null},
			resident: {process: 3, at_us: 1, bytes: 128e6},
		},
	});
}

/** Names that would like to run, to widen the page, or to turn text around. */
export const HOSTILE = [
	"<script>window.broken = 1</script>",
	"<img src=x onerror='window.broken = 1'>",
	`"onmouseover="window.broken=1`,
	"x".repeat(10000),
	"\u202egnp.exe\u2066",
	"a\u0000b\u001b[31mc\u007f",
	"\ufeff\u200b\u200f",
	"];window.broken=1;//",
	"${window.broken=1}",
	"</style></script><script>window.broken=1</script>",
	"名前 שלום مرحبا",
	"W".repeat(300) + "\u0301".repeat(200),
	"$(touch /tmp/broken)'; rm -rf x",
	"javascript:window.broken=1",
];

export function makeHostile() {
	const made = makeServer({
		count: 2000,
		name: `${HOSTILE[0]}.xht`,
		extra: (calls, add, duration) => {
			HOSTILE.forEach((text, i) => {
				const word = `${text.split("!").join("")}!${text}`;
				add(
					calls.path([`app!main(int, char**)`, word, `lib.so!${text} again`, "libc.so.6!malloc"]),
					0,
					900000 + i * 70000,
					1e9 + i * 1e8,
					Infinity,
				);
			});
		},
	});
	const {trace} = made,
		[script] = HOSTILE;
	Object.assign(trace, {command: HOSTILE.join(" "), path: "it's <b>\u001b[31m\n.xht"});
	trace.processes[0].name = script;
	trace.threads.forEach((thread, i) => (thread.name = HOSTILE[i]));
	trace.heaps[0].name = HOSTILE[3];
	trace.findings.forEach((finding, i) =>
		Object.assign(finding, {text: HOSTILE[i], evidence: HOSTILE[i + 3], command: HOSTILE[i]}),
	);
	trace.state = [
		{kind: "symbols", text: HOSTILE[1], command: HOSTILE[0]},
		{kind: "symbols", text: HOSTILE[3], command: HOSTILE[3]},
	];
	trace.answer.peak_function = [HOSTILE[0], HOSTILE[3]];
	trace.traces = [{name: HOSTILE[0]}, {name: HOSTILE[3]}];
	return made;
}
