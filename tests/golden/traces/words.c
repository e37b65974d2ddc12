/* SPDX-License-Identifier: MIT */
/* A tree of words, with copies, a list that grows, and files of the C library. */
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct word {
	char *text;
	unsigned count;
};

static void *root;
static struct word **all;
static size_t count, capacity;

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct word *)a)->text, ((const struct word *)b)->text);
}

static __attribute__((noinline)) void *xmalloc(size_t size)
{
	void *memory = malloc(size);
	if (!memory)
		abort();
	return memory;
}

static __attribute__((noinline)) void keep(struct word *word)
{
	if (count == capacity) {
		capacity = capacity ? 2 * capacity : 4;
		all = realloc(all, capacity * sizeof(*all));
	}
	all[count++] = word;
}

static __attribute__((noinline)) void add_word(const char *text)
{
	struct word *word = xmalloc(sizeof(*word));
	*word = (struct word){strdup(text), 1};
	struct word **found = tsearch(word, &root, compare);
	if (*found == word) {
		keep(word);
		return;
	}
	(*found)->count++;
	free(word->text);
	free(word);
}

int main(void)
{
	char *line = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&line, &size);
	for (int i = 0; i < 200; i++) {
		char text[40];
		snprintf(text, sizeof(text), "word %d", i * i % 37);
		add_word(text);
		fprintf(out, "%s\n", text);
	}
	fclose(out);
	printf("%zu words, %zu bytes\n", count, size);
	return 0;
}
