/* SPDX-License-Identifier: MIT */
/* Names of code that was compiled at run time: whose an address was at a time, and what the lines of a perf map say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "session/jit/jit_list.h"
#include "session/jit/jit_ranges.h"
#include "session/jit/jitdump.h"
#include "session/jit/perf_map.h"

static void add(struct jit_ranges *ranges, uint64_t start, uint64_t end, uint64_t from, uint64_t place)
{
	assert_true(jit_ranges_add(
		ranges, &(struct jit_range){.start = start, .end = end, .from_ticks = from, .place = place}));
}

/* The place of the name of an address at a time; 0: it has none. */
static uint64_t find(struct jit_ranges *ranges, uint64_t address, uint64_t ticks)
{
	const struct jit_range *found = jit_ranges_find(ranges, address, ticks);
	return found ? found->place : 0;
}

static void code_is_replaced(void **state)
{
	struct jit_ranges ranges = {.now = NULL};
	(void)state;
	add(&ranges, 100, 200, 0, 1);
	add(&ranges, 300, 400, 0, 2);
	assert_int_equal(find(&ranges, 99, 10), 0);
	assert_int_equal(find(&ranges, 100, 10), 1);
	assert_int_equal(find(&ranges, 199, 10), 1);
	assert_int_equal(find(&ranges, 200, 10), 0);
	assert_int_equal(find(&ranges, 399, 10), 2);
	/* One over both; and again the first, at its own place. */
	add(&ranges, 150, 350, 1000, 3);
	assert_int_equal(find(&ranges, 160, 1000), 3);
	assert_int_equal(find(&ranges, 160, 999), 1);
	assert_int_equal(find(&ranges, 340, 999), 2);
	assert_int_equal(find(&ranges, 120, 2000), 0);
	add(&ranges, 100, 200, 2000, 1);
	assert_int_equal(find(&ranges, 160, 2000), 1);
	assert_int_equal(find(&ranges, 160, 1500), 3);
	assert_int_equal(find(&ranges, 160, 500), 1);
	assert_int_equal(find(&ranges, 300, 3000), 0);
	jit_ranges_fini(&ranges);
	assert_int_equal(find(&ranges, 160, 2000), 0);
}

static void later_names_are_better_than_none(void **state)
{
	struct jit_ranges ranges = {.now = NULL};
	(void)state;
	add(&ranges, 100, 200, 5000, 1);
	assert_int_equal(find(&ranges, 150, 1), 1);
	jit_ranges_fini(&ranges);
}

/* Against a table of the addresses, in which each range writes itself over what was there. */
static void many_ranges(void **state)
{
	enum { ADDRESSES = 4096, ROUNDS = 20000 };
	static uint64_t owner[ADDRESSES];
	struct jit_ranges ranges = {.now = NULL};
	uint32_t random = 1;
	(void)state;
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		random = random * 1664525 + 1013904223;
		uint64_t start = random >> 12 & (ADDRESSES - 1) & ~63u, bytes = 1 + (random >> 8 & 63);
		/* What it overlaps is gone wholly: only ranges that begin together overlap here. */
		memset(owner + start, 0, 64 * sizeof(*owner));
		for (uint64_t at = start; at < start + bytes; at++)
			owner[at] = i;
		add(&ranges, start, start + bytes, i, i);
		if (random % 7 == 0)
			assert_int_equal(find(&ranges, start, i), i);
	}
	for (uint64_t at = 0; at < ADDRESSES; at++)
		assert_int_equal(find(&ranges, at, ROUNDS), owner[at]);
	jit_ranges_fini(&ranges);
}

static void lines(void **state)
{
	static const struct {
		const char *line;
		uint64_t start, size;
		const char *name; /* NULL: it is no line of a map */
	} cases[] = {
		{"7f1234 40 f", 0x7f1234, 0x40, "f"},
		{"0x7F12aB 0X40 a b c", 0x7f12ab, 0x40, "a b c"},
		{"0 1 f", 0, 1, "f"},
		{"", 0, 0, NULL},
		{"7f1234", 0, 0, NULL},
		{"7f1234 40", 0, 0, NULL},
		{"7f1234 40 ", 0, 0, NULL},
		{"7f1234 0 f", 0, 0, NULL},
		{"0x 40 f", 0, 0, NULL},
		{" 7f1234 40 f", 0, 0, NULL},
		{"-7f1234 40 f", 0, 0, NULL},
		{"00000000000000001 1 f", 0, 0, NULL},
		{"7ffffffff000 1000 f", 0x7ffffffff000, 0x1000, "f"},
		{"7ffffffff000 1001 f", 0, 0, NULL},
		{"ffffffff81000000 100 kernel", 0, 0, NULL},
		{"1000 ffffffffffffffff f", 0, 0, NULL},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t start, size;
		size_t name;
		bool is_line = perf_map_parse(cases[i].line, strlen(cases[i].line), &start, &size, &name);
		assert_int_equal(is_line, cases[i].name != NULL);
		if (!is_line)
			continue;
		assert_int_equal(start, cases[i].start);
		assert_int_equal(size, cases[i].size);
		assert_string_equal(cases[i].line + name, cases[i].name);
	}
}

static void names(void **state)
{
	static const struct {
		const char *text, *function, *file;
		uint32_t line;
	} cases[] = {
		{"JS:*load /srv/shop/cart.js:4:19", "load", "/srv/shop/cart.js", 4},
		{"JS:~serve file:///srv/a b/app.mjs:6:1", "serve", "/srv/a b/app.mjs", 6},
		{"LazyCompile:^get size node:internal/util:7:2", "get size", "node:internal/util", 7},
		{"Function:+f cart.js:1:2", "f", "cart.js", 1},
		{"JS:* /srv/app.js:1:1", "(top level)", "/srv/app.js", 1},
		{"JS:* /srv/app.js:1:20", "(anonymous)", "/srv/app.js", 1},
		{"Script:~ /srv/app.js:1:1", "(top level)", "/srv/app.js", 1},
		{"Eval:~", "(top level)", "", 0},
		{"JS:~f", "f", "", 0},
		{"JS:~f /srv/app.js:1", "f /srv/app.js", "", 0},
		{"JS:~f :99999999999:1", "f :99999999999", "", 0},
		{"Builtin:RecordWrite", "Builtin:RecordWrite", "", 0},
		{"RegExp:a:1:2", "RegExp:a:1:2", "", 0},
		{"py::Cart.load:/srv/cart.py", "Cart.load", "/srv/cart.py", 0},
		{"py::broken", "py::broken", "", 0},
		{"JIT$Cart::load", "Cart::load", "", 0},
		{"JIT$$interrupt_handler", "JIT$$interrupt_handler", "", 0},
		{"TRACE_12::/srv/cart.lua:7", "TRACE_12", "/srv/cart.lua", 7},
		{"TRACE_1::=stdin", "TRACE_1::=stdin", "", 0},
		{"TRACE_1", "TRACE_1", "", 0},
		{"void [Shop] Cart::Load(int32)[Tier0]", "Cart::Load(int32)", "", 0},
		{"long shop.Cart.load(int, java.lang.Object)", "shop.Cart.load(int, java.lang.Object)", "", 0},
		{"void shop.Cart.<init>()", "shop.Cart.<init>()", "", 0},
		{"StubRoutines (1)", "StubRoutines (1)", "", 0},
		{"(x", "(x", "", 0},
		{"\x1b[31mred\x7f", "?[31mred?", "", 0},
	};
	static struct jit_name name;
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		perf_map_name(&name, cases[i].text, strlen(cases[i].text));
		assert_string_equal(name.function, cases[i].function);
		assert_string_equal(name.file, cases[i].file);
		assert_int_equal(name.line, cases[i].line);
	}
	char text[3 * JIT_NAME_BYTES];
	memset(text, 'x', sizeof(text));
	perf_map_name(&name, text, sizeof(text));
	assert_int_equal(strlen(name.function), JIT_NAME_BYTES - 1);
}

/* What a compiler put into a function comes before it. */
static void names_with_inner_ones(void **state)
{
	static const struct {
		const char *text, *functions[4];
	} cases[] = {
		{"Shop.serve(int)->Cart.add(int)->java.nio.Bits.take(long, int)",
		 {"java.nio.Bits.take(long, int)", "Cart.add(int)", "Shop.serve(int)"}},
		{"Lshop/Cart;::add->Lshop/Cart;::grow", {"Lshop/Cart;::grow", "Lshop/Cart;::add"}},
		{"List::operator->()", {"List::operator->()"}},
		{"List::operator->() const->f()", {"f()", "List::operator->() const"}},
		{"f<auto () -> int>()", {"f<auto () -> int>()"}},
		{"JS:*a->b /srv/cart.js:4:19", {"a->b"}},
		{"->f", {"->f"}},
		{"f->", {"f->"}},
		{"->", {"->"}},
		{"", {""}},
	};
	static struct jit_names all;
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned count = 0;
		perf_map_names(&all, cases[i].text, strlen(cases[i].text));
		for (; count < 4 && cases[i].functions[count]; count++)
			assert_string_equal(all.items[count].function, cases[i].functions[count]);
		assert_int_equal(all.count, count);
	}
	/* Of too many, the outermost one and the innermost ones. */
	char text[JIT_NAMES_BYTES] = "f0";
	for (int i = 1; i < 2 * JIT_DEPTH_MAX; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "->f%d", i);
	perf_map_names(&all, text, strlen(text));
	assert_int_equal(all.count, JIT_DEPTH_MAX);
	assert_string_equal(all.items[0].function, "f31");
	assert_string_equal(all.items[JIT_DEPTH_MAX - 2].function, "f17");
	assert_string_equal(all.items[JIT_DEPTH_MAX - 1].function, "f0");
}

/* Records as a runtime writes them. */
struct dump {
	uint8_t bytes[3 * JITDUMP_RECORD_BYTES];
	size_t size;
};

static void put(struct dump *dump, uint64_t value, size_t bytes)
{
	memcpy(dump->bytes + dump->size, &value, bytes);
	dump->size += bytes;
}

static void put_text(struct dump *dump, const char *text)
{
	memcpy(dump->bytes + dump->size, text, strlen(text) + 1);
	dump->size += strlen(text) + 1;
}

static void put_record(struct dump *dump, uint32_t id, uint32_t bytes)
{
	*dump = (struct dump){.size = 0};
	put(dump, id, 4);
	put(dump, bytes, 4);
	put(dump, 12345, 8);
}

static void put_load(struct dump *dump, uint64_t start, uint64_t size, const char *name, uint32_t code_bytes)
{
	put_record(dump, 0, (uint32_t)(56 + strlen(name) + 1 + code_bytes));
	put(dump, 1, 4);
	put(dump, 2, 4);
	put(dump, start, 8);
	put(dump, start, 8);
	put(dump, size, 8);
	put(dump, 7, 8);
	put_text(dump, name);
	dump->size += code_bytes;
}

static void heads_of_dumps(void **state)
{
	struct dump dump = {.size = 0};
	(void)state;
	put(&dump, 0x4a695444, 4);
	put(&dump, 1, 4);
	put(&dump, 48, 4);
	dump.size = 48;
	assert_int_equal(jitdump_head(dump.bytes, dump.size), 48);
	assert_int_equal(jitdump_head(dump.bytes, 39), 0);
	dump.bytes[8] = 39;
	assert_int_equal(jitdump_head(dump.bytes, dump.size), 0);
	dump.bytes[8] = 48;
	dump.bytes[4] = 2;
	assert_int_equal(jitdump_head(dump.bytes, dump.size), 0);
}

static void records_of_dumps(void **state)
{
	static struct dump dump;
	struct jitdump_record record;
	(void)state;
	put_load(&dump, 0x7f0000001000, 0x80, "Shop.load", 0x80);
	assert_true(jitdump_read(dump.bytes, dump.size, &record));
	assert_int_equal(record.kind, JITDUMP_LOAD);
	assert_int_equal(record.bytes, dump.size);
	assert_int_equal(record.start, 0x7f0000001000);
	assert_int_equal(record.size, 0x80);
	assert_int_equal(record.name_bytes, 9);
	assert_memory_equal(dump.bytes + record.name, "Shop.load", 9);
	/* Not whole: it waits. What is not read of it is not asked for. */
	for (size_t size = 0; size < dump.size; size++)
		assert_false(jitdump_read(dump.bytes, size, &record));
	put_load(&dump, 0x1000, 0x1800, "large", 0x1800);
	assert_true(jitdump_read(dump.bytes, JITDUMP_RECORD_BYTES, &record));
	assert_int_equal(record.bytes, dump.size);
	/* Records of nothing, and of places where no program has code. */
	put_load(&dump, 0x1000, 0, "empty", 0);
	assert_true(jitdump_read(dump.bytes, dump.size, &record));
	assert_int_equal(record.kind, JITDUMP_OTHER);
	put_load(&dump, UINT64_MAX - 15, 16, "kernel", 0);
	assert_true(jitdump_read(dump.bytes, dump.size, &record));
	assert_int_equal(record.kind, JITDUMP_OTHER);
	put_record(&dump, 0, 20);
	assert_true(jitdump_read(dump.bytes, 20, &record));
	assert_int_equal(record.kind, JITDUMP_OTHER);
	put_record(&dump, 0, 15);
	assert_false(jitdump_read(dump.bytes, dump.size, &record));
	put_record(&dump, 1, 64);
	dump.size = 32;
	put(&dump, 0x1000, 8);
	put(&dump, 0x2000, 8);
	put(&dump, 0x80, 8);
	assert_true(jitdump_read(dump.bytes, 64, &record));
	assert_int_equal(record.kind, JITDUMP_MOVE);
	assert_int_equal(record.old_start, 0x1000);
	assert_int_equal(record.start, 0x2000);
	put_record(&dump, 77, 4000000);
	assert_true(jitdump_read(dump.bytes, dump.size, &record));
	assert_int_equal(record.kind, JITDUMP_OTHER);
	assert_int_equal(record.bytes, 4000000);
}

static void lines_of_dumps(void **state)
{
	static struct dump dump;
	size_t file = 0;
	uint32_t line = 0;
	(void)state;
	put_record(&dump, 2, 0);
	put(&dump, 0x1000, 8);
	put(&dump, 3, 8);
	put(&dump, 0x1000, 8), put(&dump, 10, 4), put(&dump, 0, 4), put_text(&dump, "/srv/Shop.java");
	put(&dump, 0x1020, 8), put(&dump, 12, 4), put(&dump, 0, 4), put_text(&dump, "\xff");
	put(&dump, 0x1040, 8), put(&dump, 99, 4), put(&dump, 0, 4), put_text(&dump, "/srv/Cart.java");
	assert_false(jitdump_line(dump.bytes, dump.size, 0xfff, &file, &line));
	assert_true(jitdump_line(dump.bytes, dump.size, 0x101f, &file, &line));
	assert_int_equal(line, 10);
	assert_true(jitdump_line(dump.bytes, dump.size, 0x1020, &file, &line));
	assert_int_equal(line, 12);
	assert_string_equal(dump.bytes + file, "/srv/Shop.java");
	assert_true(jitdump_line(dump.bytes, dump.size, 0x9999, &file, &line));
	assert_int_equal(line, 99);
	assert_string_equal(dump.bytes + file, "/srv/Cart.java");
	/* Cut anywhere, and with more lines than there are. */
	dump.bytes[24] = 0xff;
	for (size_t size = 0; size < dump.size; size++)
		if (jitdump_line(dump.bytes, size, 0x1041, &file, &line))
			assert_true(line < 99);
}

/* ---- lists of code objects ---- */

enum { DESCRIPTOR = 64, ENTRY = 128, OBJECT = 4096, OBJECT_BYTES = 1024, CODE = 0x1000, CODE_BYTES = 0x100 };

/* A code object of two functions. */
struct code_object {
	Elf64_Ehdr header;
	Elf64_Shdr section[4]; /* none, code, symbols, names */
	Elf64_Sym symbol[3];
	char names[16];
};
_Static_assert(sizeof(struct code_object) <= OBJECT_BYTES, "it fits");

/* The memory of a process: a descriptor, its entries, and an object. */
struct listing {
	struct jit_memory memory;
	struct jit_list_place place;
	struct jit_lines lines;
	char text[4096];
};

static void listing_put(const struct listing *listing, uint64_t at, const void *bytes, size_t size)
{
	assert_int_equal(pwrite(listing->memory.fd, bytes, size, (off_t)at), size);
}

static struct code_object code_object_make(void)
{
	struct code_object made = {
		.header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
			   .e_type = ET_REL,
			   .e_shoff = offsetof(struct code_object, section),
			   .e_shentsize = sizeof(Elf64_Shdr),
			   .e_shnum = 4},
		.section = {{0},
			    {.sh_type = SHT_PROGBITS, .sh_addr = CODE, .sh_size = CODE_BYTES},
			    {.sh_type = SHT_SYMTAB,
			     .sh_offset = offsetof(struct code_object, symbol),
			     .sh_size = sizeof(made.symbol),
			     .sh_link = 3},
			    {.sh_type = SHT_STRTAB,
			     .sh_offset = offsetof(struct code_object, names),
			     .sh_size = sizeof(made.names)}},
		.symbol = {{0},
			   {.st_name = 1, .st_info = STT_FUNC, .st_shndx = 1, .st_value = 0, .st_size = 0x10},
			   {.st_name = 6, .st_info = STT_FUNC, .st_shndx = 1, .st_value = 0x10, .st_size = 0x20}},
		.names = "\0load\0sort"};
	return made;
}

/* Make a list of one entry, whose next one is at `next`, with an object of so many bytes. */
static void listing_begin(struct listing *listing, const struct code_object *object, uint64_t size, uint64_t next)
{
	const uint64_t descriptor[] = {1, 0, ENTRY}, entry[] = {next, 0, OBJECT, size};
	*listing = (struct listing){.memory = {memfd_create("process", MFD_CLOEXEC), 1000}};
	listing->lines = (struct jit_lines){listing->text, 0, sizeof(listing->text)};
	listing_put(listing, DESCRIPTOR, descriptor, sizeof(descriptor));
	listing_put(listing, ENTRY, entry, sizeof(entry));
	listing_put(listing, OBJECT, object, sizeof(*object));
}

/* Read once, and compare the text. */
static void listing_expect(struct listing *listing, const char *text)
{
	jit_list_walk(&listing->memory, DESCRIPTOR, &listing->place, &listing->lines);
	assert_int_equal(listing->lines.bytes, strlen(text));
	assert_memory_equal(listing->text, text, strlen(text));
}

static void listing_end(struct listing *listing)
{
	close(listing->memory.fd);
}

static void listed_objects(void **state)
{
	const struct code_object object = code_object_make();
	struct listing listing;
	(void)state;
	listing_begin(&listing, &object, sizeof(object), 0);
	listing_expect(&listing, "1000 10 load\n1010 20 sort\n");
	assert_int_equal(listing.place.next, 0);
	/* Nothing is new. */
	listing_expect(&listing, "1000 10 load\n1010 20 sort\n");
	listing_end(&listing);
	/* Without room, the next reading goes on. */
	listing_begin(&listing, &object, sizeof(object), 0);
	listing.lines.room = JIT_LINE_BYTES;
	listing_expect(&listing, "1000 10 load\n");
	listing.lines.room = sizeof(listing.text);
	listing_expect(&listing, "1000 10 load\n1010 20 sort\n");
	listing_end(&listing);
}

/* A list that leads to itself takes its readings each time, and ends after so many entries. */
static void circles(void **state)
{
	enum { STEPS = 1 << 20, READS = 1000 };
	struct code_object object = code_object_make();
	struct listing listing;
	(void)state;
	object.header.e_shnum = 0;
	listing_begin(&listing, &object, sizeof(object), ENTRY);
	listing_expect(&listing, "");
	assert_true(listing.place.next == ENTRY && listing.memory.reads_left < READS / 10);
	uint32_t steps = listing.place.steps;
	listing.memory.reads_left = READS;
	listing_expect(&listing, "");
	assert_true(listing.place.steps > steps);
	listing.place.steps = STEPS;
	listing.memory.reads_left = READS;
	listing_expect(&listing, "");
	assert_int_equal(listing.place.next, 0);
	listing_end(&listing);
	/* One that leads nowhere ends, and the next reading begins anew. */
	object = code_object_make();
	listing_begin(&listing, &object, sizeof(object), UINT64_C(1) << 60);
	listing_expect(&listing, "1000 10 load\n1010 20 sort\n");
	assert_true(!listing.place.next && !listing.place.head);
	listing_end(&listing);
}

/* Lengths and places beyond the object lead to no name, and to no byte outside of it. */
static void odd_objects(void **state)
{
	static const uint64_t odd[] = {0,         1, sizeof(struct code_object), UINT32_MAX, INT64_MAX, UINT64_MAX - 63,
				       UINT64_MAX};
	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++)
		for (int field = 0; field < 9; field++) {
			struct code_object object = code_object_make();
			struct listing listing;
			uint64_t size = field == 0 && odd[i] != sizeof(object) ? odd[i] : sizeof(object);
			uint64_t *const fields[] = {&object.header.e_shoff,     &object.section[2].sh_offset,
						    &object.section[2].sh_size, &object.section[3].sh_offset,
						    &object.section[3].sh_size, &object.section[1].sh_addr,
						    &object.section[1].sh_size, &object.symbol[1].st_value};
			if (field)
				*fields[field - 1] = odd[i];
			listing_begin(&listing, &object, size, 0);
			jit_list_walk(&listing.memory, DESCRIPTOR, &listing.place, &listing.lines);
			assert_true(listing.lines.bytes <= 2 * JIT_LINE_BYTES && listing.memory.reads_left < 1000);
			if (listing.lines.bytes)
				assert_int_equal(listing.text[listing.lines.bytes - 1], '\n');
			listing_end(&listing);
		}
	/* The other symbols' table, and an index of a section that is not there. */
	struct code_object object = code_object_make();
	struct listing listing;
	object.section[2].sh_link = UINT32_MAX;
	listing_begin(&listing, &object, sizeof(object), 0);
	listing_expect(&listing, "");
	listing_end(&listing);
	object = code_object_make();
	object.symbol[1].st_shndx = 0xfff1;
	object.symbol[2].st_name = UINT32_MAX;
	listing_begin(&listing, &object, sizeof(object), 0);
	listing_expect(&listing, "");
	listing_end(&listing);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_is_replaced),
		cmocka_unit_test(later_names_are_better_than_none),
		cmocka_unit_test(many_ranges),
		cmocka_unit_test(lines),
		cmocka_unit_test(names),
		cmocka_unit_test(names_with_inner_ones),
		cmocka_unit_test(heads_of_dumps),
		cmocka_unit_test(records_of_dumps),
		cmocka_unit_test(lines_of_dumps),
		cmocka_unit_test(listed_objects),
		cmocka_unit_test(circles),
		cmocka_unit_test(odd_objects),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
