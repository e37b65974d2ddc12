// SPDX-License-Identifier: MIT
// What modules pass to each other. No byte of this file is in the page: tsc reads it when the tests check the comments of the modules.
/** A function. */
interface Frame {
	image: string;
	short: string;
	full: string;
	file: string;
	marks: number;
	key: string; // image!full, as it arrived
}
interface Cells {
	whole: boolean; // the range is the whole run
	bounds: Float64Array; // nanoseconds, one more than intervals
	peak: number; // index of the bound that is the peak, or -1
	count: number;
	nodeCount: number;
	lumpedBytes: number;
	lumpedStacks: number;
	lumpedFunctions: number;
	plainBytes: number;
	isRounded: boolean; // sums are above 2^53
	frames: Frame[];
	node: Uint32Array;
	thread: Uint32Array;
	heap: Uint32Array;
	birth: Uint16Array;
	end: Uint16Array;
	kind: Uint8Array;
	size: Uint8Array;
	life: Uint8Array;
	blocks: Float64Array;
	bytes: Float64Array;
	reallocs: Float64Array;
	temporaries: Float64Array;
	parent: Int32Array; // -1 for outermost frames
	frame: Uint32Array; // index of frames
	line: Uint32Array;
	inlined: Uint8Array;
	asker: Uint32Array;
	stacks: Uint32Array;
	maxBytes: Float64Array;
	calls: Float64Array;
	resident: Float64Array; // NaN where it was not measured
}
/** Indexes of bounds. A moment has equal ones. */
type Choice = {kind: "moment"; at: number} | {kind: "window"; from: number; to: number; classes: number};
type Grouping = "function" | "stack" | "image" | "thread" | "process" | "heap" | "size" | "life";
type Measure = "bytes" | "blocks" | "peak" | "temporaries";
type GroupName = {name: string; detail: string; id: string};
/** By function, image or search: one of the frames on the path has it. */
type Filter = {by: Grouping | "search"; key: string; hide: boolean};
/** README.md has its members; some may be absent. */
type Trace = Record<string, any> &
	Record<"traces" | "processes" | "threads" | "heaps", any[]> &
	Partial<Record<"findings" | "state" | "marks" | "gaps", any[]>>;
/** Which group a cell is in. */
interface Grouped {
	keys: Uint32Array; // a group for each cell
	count: number; // of groups
}
/** Cells of a trace with what is derived from them. */
interface Model {
	cells: Cells;
	trace: Trace;
	images: string[];
	imageOf: Uint32Array; // of each function
	last: number; // index of the last bound
	whole: Model | null; // model of the whole run, if this one is of a range: it decides about colours
	cache: Map<string, any>;
}
interface Selected {
	change: Change | null; // what differs from the selection that this one was made of; null: made anew
	bits: Uint8Array; // for each cell: its class as a bit, 0 for none
	hits: Uint8Array; // whether it is selected
	classBytes: Float64Array; // of AIFI, AIFO, AOFI, AOFO; zeros for a moment
	classBlocks: Float64Array;
	bytesOf: Float64Array; // by bits
	blocksOf: Float64Array;
	bytes: number;
	blocks: number;
	earlierBytes: number; // of older blocks from before the trace, which no class has
}
/** A step of a drag: most cells keep their class. */
interface Change {
	of: Selected; // the selection before, whose arrays this one has taken
	cells: Uint32Array; // that changed
	bits: Uint8Array; // which these had before
	now: Uint8Array; // which they have
}
/** For each group. */
interface GroupSums {
	bytes: Float64Array; // selected
	blocks: Float64Array; // selected
	made: Float64Array; // bytes that began in the window, or in the whole range if a moment is chosen
	calls: Float64Array; // their blocks
	change: Float64Array; // AIFO less AOFI; zeros for a moment
}
/** Of the timeline. */
interface Series {
	groups: number[]; // of the model of the whole run that have a colour, the largest first
	ofGroup: Uint8Array; // index of the colour of each group; SERIES_MAX: others
	others: number; // how many
}
/** Times, so that a selection means the same with other bounds. */
type When = {kind: "peak"} | {kind: "moment"; at: number} | {kind: "window"; from: number; to: number; classes: number};
/** A frame of the flame view, or a row; "inclusive": a function with all that is below it. */
type Item = {kind: "path"; path: string} | {kind: "group"; by: Grouping | "inclusive"; key: string};
/** What the selection is compared with: as A, or as B. */
type Other = {trace: number; isB: boolean; selection: When};
interface State {
	trace: number;
	view: "flame" | "table" | "blocks" | "sizes" | "map" | "compare";
	by: Grouping; // of the timeline; "" before a trace is known
	selection: When;
	range: {from: number; to: number} | null; // that the timeline shows; null: the whole run
	filters: Filter[];
	words: string; // filters of xheap heap that the server applies, as typed
	measure: Measure;
	isInverted: boolean;
	isFolded: boolean;
	isMerged: boolean;
	focus: string; // path of a frame
	opened: number[]; // chains
	rows: Grouping | "inclusive"; // of the table
	sort: string; // a column
	isRising: boolean;
	expanded: string; // key of a row
	search: string;
	item: Item | null; // that is selected
	other: Other | null;
	block: string; // number of a selected block
	map: "fullness" | "function" | "age"; // what the colours of pages say
}
interface CallTree {
	parent: Int32Array;
	frame: Uint32Array;
	ofNode: Uint32Array; // the node of this tree for each node of the cells
	source: Uint32Array; // a node of the cells for each one of this tree
	begins: Uint32Array; // of each node's children in `children`; those of the root come last
	children: Uint32Array;
}
interface Branch {
	frame: number; // index of frames; -1 a group or the root
	value: number;
	self: number;
	colors: Float64Array | null; // sums by series; null: one colour
	node: number; // of the cells, or -1
	divide: (least: number) => Division;
}
/** Children in any order; those below a least value are counted, with their sum. */
type Division = {branches: Branch[]; count: number; value: number};
type Sorted = {rows: {branch: Branch; placed: Placed}[]; count: number; value: number};
/** A frame with its place. */
interface Placed {
	kind: "root" | "group" | "frame" | "chain" | "small";
	key: number; // the same for the same path in another layout
	parent: number; // index in the layout, or -1
	depth: number; // row
	x: number;
	width: number; // in pixels
	value: number;
	self: number;
	frame: number; // index of frames, or -1
	run: number[]; // frames of a chain, outermost first
	count: number; // frames of a chain, or blocks that were merged
	colors: Float64Array | null; // sums by series, until the next layout
	series: number; // index of the colour, or -1 for grey
	node: number; // of the cells, or -1
	name: string;
	path: string; // for the address
}
interface FlameQuestion {
	hits: Uint8Array;
	selected?: Selected | null; // that has these hits
	total?: number; // of the selection, if these cells are a part of it
	classes?: number; // bits of it that are hits
	measure: Measure;
	by: Grouping; // of the timeline
	isFolded: boolean;
	isInverted: boolean;
	isMerged: boolean; // recursive calls are one
	width: number;
	opened: Set<number>; // keys of chains
	focus: string; // a path, or empty
	order: Map<number, number> | null; // places of keys while dragging, or null to sort by value
	title: string;
}
/** The call tree, once for each group of a split view: only the nodes that the group's cells have. */
interface Forest {
	tree: CallTree;
	parent: Int32Array; // -1 for outermost frames
	node: Uint32Array; // of the call tree
	ofCell: Uint32Array; // the innermost node of each cell
	groups: Uint32Array; // where each group's nodes begin
	roots: Uint32Array; // where its outermost nodes begin in `children`
	begins: Uint32Array;
	children: Uint32Array; // as of a call tree
	own: Float64Array; // sums of each node alone, of the selection `of` and by its colours if it has some; a step of a drag changes them
	of: any[];
	self: Float64Array;
	value: Float64Array; // of a layout, made anew for each one
	colors: Float64Array | null;
}
/** Of a stack: `at` is its next frame, -1 none. */
type Rest = {at: number; origin: number; value: number; color: number};
interface Picture {
	model: Model; // whose bounds the selection has
	shown: Model; // of the timeline
	choice: Choice;
	mask: Uint8Array | null; // of the filters
	selected: Selected;
	isPeak: boolean; // whether the moment is the exact peak
	isWhole: boolean; // whether the window is the whole run
	hitPaths: Uint8Array | null; // for each node whether the search hits its path
	hitFrames: Uint8Array | null; // for each function
	itemMask: Uint8Array | null; // cells of the selected frame or row
	title: string; // the selection in words
	made: string; // mark before sums of what was made
	live: string; // mark before live bytes
	isUncertain: boolean; // live bytes may be too large
	passMs: number; // time of the pass over the cells
}
interface App {
	store: import("./store.js").Store;
	source: Source;
	trace: Trace;
	whole: Model;
	shown: Model;
	filter: string | undefined; // words of the state, as a request has them
	picture: Picture;
	detail: Picture; // of the flame: as picture, or of the finer cells of its focus
	palette: Palette;
	hover: (ink: Ink | null) => void;
	ink: Ink | null; // what the pointer is on
	cursor: number; // a bound under the pointer, or -1
	say: (text: string) => void; // to screen readers
	warn: (text: string) => void; // a line of text
	isResidentOff: () => boolean; // whether resident memory is left out of the timeline
	other: {model: Model; trace: any; said: string; runs: {model: Model; trace: any}[]} | null; // cells to compare with, when they are there; how they match; those of all of runsOf()
	runsOf: (other: Other) => Other[];
	otherOf: () => Other | null; // what is compared with
	panel: any; // views that others ask
	timeline: any;
	compare: any;
	flame: any;
	map: any;
	find: (name: string, query: Record<string, string>) => {answer?: any; error?: string};
	fail: (error: unknown) => void; // says what went wrong
	isGoingOn: boolean; // this picture follows another one of a recording
	lacking: string; // why what pictures of a recording do not say is not shown
	redraw: () => void;
	redrawTimeline: () => void;
}
/** Cells whose live curve is drawn; `key` tells one from another; `model` has them, if its bounds are the shown ones. */
type Ink = {key: string; mask: (model: Model) => Uint8Array; model?: Model};
/** Colours as #rrggbb, and how much of a series' colour a frame has. */
type Palette = Record<string, string> & {series: string[]; strength: number};
/** *. */
type FrameColors = {ground: string; edge: string; text: string; value: string};
/** *. */
type Child = Node | string | null | undefined | false;
type GridColumn = {id: string; title: string; hint: string; class: string; isWide?: boolean; isSortable: boolean};
type GridRow = {id: string};
interface Row {
	key: number; // group
	name: string;
	detail: string;
	id: string;
}
type Column = GridColumn & {
	value?: (sums: GroupSums, key: number, table: import("./table.js").Table) => number;
	text?: (value: number, app: App) => string;
};
type Run = ReturnType<typeof import("./compare.js").makeSide> & {path: string};
/** Of several runs the first one, for all that is not a sum. */
type Side = Run & {runs: Run[]};
/** Of A and B. */
type ComparedRow = {id: string; name: string; detail: string; bytes: [number, number]; blocks: [number, number]; runs: number[][]}; // bytes of the runs of A, and of B
/** *. */
type ComparedColumn = GridColumn & {value?: (row: ComparedRow) => number; text?: (value: number) => string};
/** As the server sends it. */
type BlockRow = any;
/** *. */
type BlockColumn = GridColumn & {value?: null; text?: (row: BlockRow) => string};
/** Pages without a large gap between them; `index` counts those before, and runs know their place. */
type MapRange = {
	process: number;
	page: number;
	pages: number;
	index: number;
	top: number;
	runs: {run: number; offset: number}[];
};
interface CellsQuery {
	from?: number; // nanoseconds
	to?: number;
	n?: number; // intervals
	bounds?: number[]; // times that must be bounds
	filter?: string; // words with line feeds between them
	node?: string; // outermost frames of stacks: only these
	lane?: string; // which requests this one replaces: those with the same one
}
interface Source {
	isServer: boolean; // whether it answers more than the whole run
	held?: number; // the time as of which a recording is asked
	json: (name: string, trace: number, query?: Record<string, string>) => Promise<any>; // an answer that is no cells
	cells: (trace: number, query: CellsQuery) => Promise<ArrayBuffer>; // a newer request of the same name aborts an older one
}
type Action = {
	keys: string[];
	words: string;
	run: (app: App & {timeline: any; toggleTheme: () => void; open: (id: string) => void}, key: string) => void;
};
type Context2D = CanvasRenderingContext2D;
type Mark = {time: number; sign: string; words: string; isLoud: boolean};
