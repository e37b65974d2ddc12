// SPDX-License-Identifier: MIT
// Text of strangers: names, command lines and paths. It is only ever shown as text; here it loses what could steer or widen a line.

/** Control, zero-width and direction characters, line separators, and halves of surrogates. */
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]/gu;

/** Longest text that is drawn on a canvas, in characters. */
export const DRAWN_MAX = 300;
/** Longest text of a tooltip, in characters. */
export const TITLE_MAX = 400;

/** @param {unknown} text @returns {string} the text with U+FFFD for each unsafe character */
export function safeText(text) {
	return String(text ?? "").replace(UNSAFE, "\ufffd");
}

/** @param {string} text @param {number} most @returns {string} at most so many characters, the last one an ellipsis if it was cut */
export function cutText(text, most) {
	return text.length > most ? text.slice(0, most - 1) + "…" : text;
}

/** A word for the shell, quoted if it has to be. Control characters are escaped, so that a pasted command is one line. @param {string} word @returns {string} */
export function quoteWord(word) {
	if (/^[\w@%+=:,./-]+$/.test(word)) return word;
	if (!/[\u0000-\u001f\u007f]/.test(word)) return "'" + word.replaceAll("'", "'\\''") + "'";
	const escaped = word
		.replace(/[\\']/g, "\\$&")
		.replace(/[\u0000-\u001f\u007f]/g, (c) => "\\x" + c.charCodeAt(0).toString(16).padStart(2, "0"));
	return "$'" + escaped + "'";
}

/** A pattern of xheap that matches this name. Bytes that are no text arrive as U+FFFD, so a star stands for them. @param {string} name @returns {string} */
export function patternOf(name) {
	return name.replace(/\ufffd+/g, "*");
}
