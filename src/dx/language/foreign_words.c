/* SPDX-License-Identifier: MIT */
#include "dx/language/foreign_words.h"

#include <string.h>
#include <strings.h>

/* `words` have blanks between them, and are compared without case. */
struct foreign_row {
	const char *words, *answer;
};

static const struct foreign_row signs[] = {
	{"=", "== compares; = is for a variable, @$name = value, and for a field of new { }"},
	{"and", "&& joins two conditions"},
	{"or", "|| joins two conditions"},
	{"not", "! negates a condition"},
	{"is", "== compares; x == null asks whether x is absent"},
	{"<>", "!= compares"},
	{"between", "a range is written x >= 1 && x <= 5"},
	{"in", "several values are written x == 1 || x == 2"},
	{"contains like matches startswith endswith", "a part of a text is written x.Contains(\"text\")"},
	{"select from where group order",
	 "a query is a chain: @$cursession.TTD.Data.Heap().Where(h => h.Size > 100).Count()"},
};

static const struct foreign_row of_collections[] = {
	{"Length Size Len NumberOf", "Count()"},
	{"SelectMany FlatMap", "Flatten(x => collection)"},
	{"Sort SortBy Order OrderByAscending", "OrderBy(x => x.Member)"},
	{"OrderByDesc SortDescending SortByDescending", "OrderByDescending(x => x.Member)"},
	{"Filter FindAll", "Where(x => condition)"},
	{"Map Project", "Select(x => value)"},
	{"Reduce Fold", "Aggregate(start, (sum, x) => value)"},
	{"Unique Uniq", "Distinct()"},
	{"ToList ToArray AsEnumerable ToSet ToHashSet ToDictionary ToLookup", "the collection without it: it is one"},
	{"Reverse", "OrderByDescending(x => x.Member)"},
	{"Find FirstOrDefault", "First(x => condition)"},
	{"LastOrDefault", "Last(x => condition)"},
	{"SingleOrDefault", "Single(x => condition)"},
	{"Group", "GroupBy(x => x.Member)"},
	{"Limit Top Head", "Take(count)"},
	{"Offset Drop", "Skip(count)"},
	{"Exists Some", "Any(x => condition)"},
	{"Every", "All(x => condition)"},
	{"ForEach", "Select(x => value)"},
	{"Avg Mean", "Average(x => x.Member)"},
	{"MaxBy", "OrderByDescending(x => x.Member).First()"},
	{"MinBy", "OrderBy(x => x.Member).First()"},
	{"ElementAt Nth", "Skip(n).First()"},
	{"Includes Has", "Contains(value)"},
	{"Values Items Elements", "the collection without it"},
};

static const struct foreign_row of_texts[] = {
	{"Size Len Count", "Length"},
	{"Includes Matches IsMatch Has Find Like", "Contains(\"text\")"},
	{"ToLowerCase Lower", "ToLower()"},
	{"ToUpperCase Upper", "ToUpper()"},
	{"Split", "Substring() and IndexOf(), or of a stack its Frames"},
	{"Substr Slice", "Substring(start, length)"},
};

/* Those whose first name the class has. */
static const struct foreign_row of_objects[] = {
	{"SystemTime WallTime DateTime Date", "TimeStart.ToSystemTime()"},
	{"Time Timestamp Start StartTime When Begin", "TimeStart"},
	{"Stop EndTime", "TimeEnd"},
	{"Tid ThreadId", "Thread.Id"},
	{"Pid ProcessId", "Process.Id"},
	{"Bytes Length RequestedSize Sz", "Size"},
	{"Total Sum", "Bytes"},
	{"Type Kind Operation Op Event", "Action"},
	{"Callstack StackTrace Backtrace Bt Trace", "Stack"},
	{"Ptr Pointer Addr", "Address"},
	{"Symbol Func Method", "Function"},
	{"Name", "Function"},
	{"File Line Source", "Caller.File and Caller.Line"},
	{"Image Module", "Caller.Image"},
	{"Leaked IsLeaked IsLeak", "IsOutstanding"},
	{"Leaked IsLeaked IsLeak IsOutstanding IsFreed", "Freed, which is absent for what nobody freed"},
	{"FreeTime FreedAt IsFreed", "TimeEnd, and End says how it ended"},
	{"AllocTime AllocatedAt", "TimeStart"},
	{"Age", "Lifetime"},
	{"Executable Exe Image Path", "Name"},
	{"Argv Args Arguments Cmdline", "CommandLine"},
	{"ExitCode", "Status"},
};

static const struct foreign_row ends[] = {
	{"leak leaked leaks live alive none never",
	 "what nobody freed has exit or open; IsOutstanding and !Freed ask for it"},
};

static bool has_word(const char *words, const char *word)
{
	size_t length = strlen(word);
	for (const char *at = words; *at; at += strspn(at, " ")) {
		size_t next = strcspn(at, " ");
		if (next == length && !strncasecmp(at, word, length))
			return true;
		at += next;
	}
	return false;
}

static bool has_member(const struct dx_class *class, const char *answer)
{
	size_t length = strcspn(answer, ".,( ");
	const struct dx_member *row = class->members;
	while (row->name && (strlen(row->name) != length || strncmp(row->name, answer, length) != 0))
		row++;
	return row->name;
}

static const char *find(const struct foreign_row *rows, size_t count, const struct dx_class *class, const char *word)
{
	for (size_t i = 0; i < count; i++)
		if (has_word(rows[i].words, word) && (!class || has_member(class, rows[i].answer)))
			return rows[i].answer;
	return NULL;
}

#define FIND(rows, class, word) find(rows, sizeof(rows) / sizeof((rows)[0]), class, word)

const char *dx_foreign_sign(const char *word)
{
	return FIND(signs, NULL, word);
}

const char *dx_foreign_name(unsigned kind, const struct dx_class *class, const char *name)
{
	return kind == DX_SEQUENCE                ? FIND(of_collections, NULL, name)
	       : kind == DX_TEXT                  ? FIND(of_texts, NULL, name)
	       : class && class->members && *name ? FIND(of_objects, class, name)
						  : NULL;
}

const char *dx_foreign_text(const char *const *words, size_t count, const char *text)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(words[i], "open"))
			return FIND(ends, NULL, text);
	return NULL;
}
