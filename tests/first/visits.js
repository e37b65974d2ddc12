// SPDX-License-Identifier: MIT
// A shop that keeps an object of each visit, for so many seconds. It lies in V8's own heap.
'use strict';
const visits = module.exports = new Map();
function remember(visit) { visits.set(visit, { page: `/page/${visit}`, items: new Array(50).fill(visit) }); }
function serve(visit) { remember(visit); return visits.size; }
let visit = 0;
const end = Date.now() + 1000 * Number(process.argv[2]);
const timer = setInterval(() => {
  for (let i = 0; i < 1000; i++) serve(visit++);
  if (Date.now() > end) clearInterval(timer);
}, 20);
