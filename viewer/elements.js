// SPDX-License-Identifier: MIT
// Makes elements of the page. Text becomes text nodes; nothing here takes HTML.

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T | `${T}.${string}`} tag with classes behind dots @param {Record<string, any> | Child} [first] attributes, properties (`hidden`, `disabled`, `value`), and listeners (`onclick`); or the first child @param {Child[]} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function make(tag, first, ...children) {
	const [kind, ...classes] = tag.split("."),
		element = /** @type {HTMLElementTagNameMap[T]} */ (document.createElement(kind)),
		isChild = !first || typeof first === "string" || first instanceof Node;
	element.classList.add(...classes);
	for (const [name, value] of Object.entries(isChild ? {} : first)) {
		if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
		else if (typeof value === "boolean" && !name.startsWith("aria-")) /** @type {any} */ (element)[name] = value;
		else if (value != null) element.setAttribute(name, String(value));
	}
	return fill(element, isChild && first, ...children);
}

const FOCUSABLE = "button, select, input, [tabindex]";

/** @template {Element} E @param {E} element @param {Child[]} children @returns {E} with these children only. If one had the focus, the one in its place gets it. */
export function fill(element, ...children) {
	const focused = element.contains(document.activeElement)
		? [...element.querySelectorAll(FOCUSABLE)].indexOf(/** @type {Element} */ (document.activeElement))
		: -1;
	element.replaceChildren(
		...children
			.filter((child) => child != null && child !== false)
			.map((child) => /** @type {Node | string} */ (child)),
	);
	if (focused >= 0) {
		const others = element.querySelectorAll(FOCUSABLE),
			next = others[Math.min(focused, others.length - 1)] ?? element.closest("[tabindex]");
		if (next instanceof HTMLElement) next.focus({preventScroll: true});
	}
	return element;
}

/** @param {string} id @returns {HTMLElement} which the page has */
export function byId(id) {
	const element = document.getElementById(id);
	if (!element) throw new Error(`the page has no ${id}`);
	return element;
}

/** @param {Element} element @param {Record<string, (event: any) => void>} listeners by event */
export function listen(element, listeners) {
	for (const [event, run] of Object.entries(listeners)) element.addEventListener(event, run);
}

/** @param {string} word @returns {string} with a capital */
export function capital(word) {
	return word[0].toUpperCase() + word.slice(1);
}

/** @param {string} id @param {() => void} run */
export function onClick(id, run) {
	byId(id).addEventListener("click", run);
}

/** @param {string} text @returns {HTMLElement} a name of a stranger: its direction does not reach beyond it */
export function name(text) {
	return make("bdi.name", text);
}

/** Shows a tooltip beside the pointer. @param {HTMLElement} tip @param {MouseEvent} event */
export function placeTip(tip, event) {
	tip.hidden = false;
	const {width, height} = tip.getBoundingClientRect();
	tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, window.innerWidth - width - 8))}px`;
	tip.style.top = `${event.clientY + 20 + height > window.innerHeight ? Math.max(4, event.clientY - height - 12) : event.clientY + 20}px`;
}

/**
 * Fits a canvas to its box and to the screen's pixels.
 * @param {HTMLCanvasElement} canvas @param {number} width @param {number} height in CSS pixels @returns {Context2D} cleared, in CSS pixels
 */
export function prepareCanvas(canvas, width, height) {
	const ratio = window.devicePixelRatio || 1,
		pixels = [Math.round(width * ratio), Math.round(height * ratio)];
	if (canvas.width !== pixels[0] || canvas.height !== pixels[1]) {
		[canvas.width, canvas.height] = pixels;
		canvas.style.width = `${width}px`;
		canvas.style.height = `${height}px`;
	}
	const context = /** @type {Context2D} */ (canvas.getContext("2d"));
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	context.clearRect(0, 0, width, height);
	return context;
}

/** As in style.css. */
export const FONT_FAMILY = "system-ui, -apple-system, 'Segoe UI', 'Adwaita Sans', Inter, 'Noto Sans', sans-serif";

/** By font, then by text. @type {Map<string, Map<string, number>>} */
const widths = new Map();
const WIDTHS_MAX = 20000;

/** @param {Context2D} context @param {string} text @returns {number} its width, remembered */
export function textWidth(context, text) {
	const {font} = context;
	let known = widths.get(font);
	if (!known || known.size > WIDTHS_MAX) widths.set(font, (known = new Map()));
	let width = known.get(text);
	if (width === undefined) known.set(text, (width = context.measureText(text).width));
	return width;
}

/** @param {Context2D} context @param {string} text at most DRAWN_MAX characters @param {number} room pixels @returns {string} what fits, or nothing */
export function fitText(context, text, room) {
	if (textWidth(context, text) <= room) return text;
	const letter = textWidth(context, "n");
	let low = 0,
		high = Math.min(text.length, Math.ceil((room / letter) * 2));
	while (low < high) {
		const middle = (low + high + 1) >> 1;
		if (textWidth(context, text.slice(0, middle) + "…") <= room) low = middle;
		else high = middle - 1;
	}
	return low >= 2 ? text.slice(0, low) + "…" : "";
}
