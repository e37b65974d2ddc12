// SPDX-License-Identifier: MIT
// Numbers for paths of calls, the same in other cells of a trace: texts would grow with the square of a stack's depth.

/** @param {number} key @param {number} hash @returns {number} of a path with one more frame */
export function extendKey(key, hash) {
	const high = Math.imul((key / 0x4000000) ^ hash, 0x9e3779b1) >>> 6,
		low = Math.imul((key % 0x4000000) + hash, 0x85ebca6b) >>> 6;
	return high * 0x4000000 + low;
}

/** @param {string} text @returns {number} 32 bits */
export function hashText(text) {
	let hash = 0x811c9dc5;
	for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
	return hash >>> 0;
}
