/* SPDX-License-Identifier: MIT */
/* For programs/python_damaged.py: a heap call while a word of the interpreter is damaged. */
#include <stdint.h>
#include <stdlib.h>

void take_while(uint64_t *word, uint64_t value, size_t size);

void take_while(uint64_t *word, uint64_t value, size_t size)
{
	uint64_t before = *word;
	*(volatile uint64_t *)word = value;
	void *volatile block = malloc(size);
	*(volatile uint64_t *)word = before;
	free(block);
}
