// SPDX-License-Identifier: MIT
// A shop that keeps a picture of each visit, for so many seconds.
'use strict';
const pictures = [];
function picture(visit) { return Buffer.alloc(20000, visit); }
function remember(visit) { pictures.push(picture(visit)); }
function serve(visit) {
  const page = JSON.stringify({ visit, items: Array.from({ length: 50 }, (_, i) => ({ id: i, price: 3 * i })) });
  remember(visit);
  return page.length;
}
let visit = 0;
const end = Date.now() + 1000 * Number(process.argv[2]);
const timer = setInterval(() => {
  for (let i = 0; i < 10; i++) serve(visit++);
  if (Date.now() > end) {
    clearInterval(timer);
    console.log(process.memoryUsage());
  }
}, 20);
