/* SPDX-License-Identifier: MIT */
#include "dx/language/lexer.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* Signs, longer ones before their beginnings. */
static const char *const signs[] = {"=>", "->", "==", "!=", "<=", ">=", "&&", "||", "<<", ">>", "(",
				    ")",  "[",  "]",  "{",  "}",  ".",  ",",  "+",  "-",  "*",  "/",
				    "%",  "<",  ">",  "!",  "~",  "&",  "|",  "^",  "?",  ":",  "="};
enum { SIGN_COUNT = sizeof(signs) / sizeof(signs[0]), UNIT_BYTES = 8 };

static bool is_name_byte(char byte, bool is_first)
{
	return byte == '_' || isalpha((unsigned char)byte) || (!is_first && isdigit((unsigned char)byte)) ||
	       (unsigned char)byte >= 0x80;
}

static int refuse(struct dx_token *token, int column, struct diag *diag, const char *why)
{
	token->column = column;
	return diag_fail(diag, EINVAL, "%s", why);
}

/* Blanks and comments. */
static int skip(struct dx_lexer *lexer, struct dx_token *token, struct diag *diag)
{
	const char *text = lexer->text;
	for (;;) {
		if (isspace((unsigned char)text[lexer->at])) {
			lexer->at++;
		} else if (!strncmp(text + lexer->at, "//", 2)) {
			lexer->at += (int)strcspn(text + lexer->at, "\n");
		} else if (!strncmp(text + lexer->at, "/*", 2)) {
			const char *end = strstr(text + lexer->at + 2, "*/");
			if (!end)
				return refuse(token, lexer->at, diag, "the comment has no end");
			lexer->at = (int)(end + 2 - text);
		} else {
			return 0;
		}
	}
}

static int digit_value(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	int letter = tolower((unsigned char)digit);
	return letter >= 'a' && letter <= 'z' ? letter - 'a' + 10 : 99;
}

/* Digits of a base, with ' or ` between them. */
static int lex_digits(struct dx_lexer *lexer, struct dx_token *token, int base, struct diag *diag)
{
	uint64_t number = 0;
	int digits = 0;
	assert(base >= 2 && base <= 16);
	for (;; lexer->at++) {
		char digit = lexer->text[lexer->at];
		if ((digit == '`' || digit == '\'') && digits && digit_value(lexer->text[lexer->at + 1]) < base)
			continue;
		int value = digit_value(digit);
		if (value >= base)
			break;
		if (__builtin_mul_overflow(number, (uint64_t)base, &number) ||
		    __builtin_add_overflow(number, (uint64_t)value, &number))
			return refuse(token, token->column, diag, "the number has more than 64 bits");
		digits++;
	}
	if (!digits)
		return refuse(token, token->column, diag, "digits are missing behind the number's mark");
	token->number = base == 10 ? dx_decimal(number) : dx_number(number);
	return 0;
}

/* The unit of a number of bytes, if one is right behind the digits: 64K, 1MB, 2GiB. */
static int lex_unit(struct dx_lexer *lexer, struct dx_token *token, struct diag *diag)
{
	int start = lexer->at;
	char unit[UNIT_BYTES];
	uint64_t factor;
	while (is_name_byte(lexer->text[lexer->at], false))
		lexer->at++;
	if (lexer->at == start)
		return 0;
	snprintf(unit, sizeof(unit), "1%.*s", lexer->at - start, lexer->text + start);
	if (!text_parse_size(unit, &factor))
		return refuse(token, start, diag, "this is no unit of bytes: K, M, G or T, also with B or iB behind");
	if (__builtin_mul_overflow(token->number.number, factor, &token->number.number))
		return refuse(token, token->column, diag, "the number has more than 64 bits");
	return 0;
}

static int lex_real(struct dx_lexer *lexer, struct dx_token *token)
{
	char *end;
	token->number = dx_real(strtod(lexer->text + lexer->at, &end));
	lexer->at = (int)(end - lexer->text);
	return 0;
}

/* 0n decimal, 0t and 0o octal, 0y and 0b binary, 0x hexadecimal; without a mark decimal. */
static int lex_number(struct dx_lexer *lexer, struct dx_token *token, struct diag *diag)
{
	static const struct {
		char letter;
		int base;
	} marks[] = {{'x', 16}, {'n', 10}, {'t', 8}, {'o', 8}, {'y', 2}, {'b', 2}};
	const char *at = lexer->text + lexer->at;
	token->kind = DX_TOKEN_NUMBER;
	for (size_t i = 0; at[0] == '0' && i < sizeof(marks) / sizeof(marks[0]); i++)
		if (tolower((unsigned char)at[1]) == marks[i].letter) {
			lexer->at += 2;
			return lex_digits(lexer, token, marks[i].base, diag);
		}
	size_t digits = strspn(at, "0123456789");
	if ((at[digits] == '.' || at[digits] == 'e') && isdigit((unsigned char)at[digits + 1]))
		return lex_real(lexer, token);
	int error = lex_digits(lexer, token, 10, diag);
	return error ? error : lex_unit(lexer, token, diag);
}

static int lex_escape(struct dx_lexer *lexer, char *byte)
{
	static const char letters[] = "nrt0\\\"'", bytes[] = "\n\r\t\0\\\"'";
	const char *found = lexer->text[lexer->at] ? strchr(letters, lexer->text[lexer->at]) : NULL;
	*byte = found ? bytes[found - letters] : lexer->text[lexer->at];
	return lexer->text[lexer->at++] ? 0 : -EINVAL;
}

static int lex_text(struct dx_lexer *lexer, struct dx_token *token, struct diag *diag)
{
	char quote = lexer->text[lexer->at++];
	char *copy = dx_alloc(lexer->arena, strlen(lexer->text + lexer->at) + 1);
	size_t length = 0;
	for (;;) {
		char byte = lexer->text[lexer->at++];
		if (byte == quote)
			break;
		if (!byte || (byte == '\\' && lex_escape(lexer, &byte)))
			return refuse(token, token->column, diag, "the text has no closing quote");
		copy[length++] = byte;
	}
	for (const unsigned char *at = (const unsigned char *)copy; *at; at += text_utf8_length(at))
		if (!text_utf8_length(at))
			return refuse(token, token->column, diag, "the text is not UTF-8");
	token->kind = DX_TOKEN_TEXT;
	token->text = copy;
	return 0;
}

/* 'a' is the number of the character. */
static int lex_character(struct dx_lexer *lexer, struct dx_token *token, struct diag *diag)
{
	int error = lex_text(lexer, token, diag);
	if (error)
		return error;
	if (strlen(token->text) != 1)
		return refuse(token, token->column, diag, "a character in '...' is one byte; a text has \"...\"");
	token->kind = DX_TOKEN_NUMBER;
	token->number = dx_number((unsigned char)*token->text);
	return 0;
}

static void lex_name(struct dx_lexer *lexer, struct dx_token *token)
{
	int start = lexer->at;
	while (is_name_byte(lexer->text[lexer->at], lexer->at == start))
		lexer->at++;
	token->text = dx_copy_text(lexer->arena, lexer->text + start, (size_t)(lexer->at - start));
}

static int lex_at(struct dx_lexer *lexer, struct dx_token *token, struct diag *diag)
{
	char next = lexer->text[++lexer->at];
	if (next == '"') {
		int error = lex_text(lexer, token, diag);
		token->kind = DX_TOKEN_ODD_NAME;
		return error;
	}
	if (next == '$')
		lexer->at++;
	if (!is_name_byte(lexer->text[lexer->at], true))
		return refuse(token, token->column, diag, "a name is missing behind @");
	token->kind = DX_TOKEN_VARIABLE;
	lex_name(lexer, token);
	return 0;
}

static int lex_sign(struct dx_lexer *lexer, struct dx_token *token, struct diag *diag)
{
	token->kind = DX_TOKEN_SIGN;
	for (int i = 0; i < SIGN_COUNT; i++)
		if (!strncmp(lexer->text + lexer->at, signs[i], strlen(signs[i]))) {
			token->text = signs[i];
			lexer->at += (int)strlen(signs[i]);
			return 0;
		}
	return refuse(token, lexer->at, diag, "this character begins nothing");
}

int dx_lex(struct dx_lexer *lexer, struct dx_token *token, struct diag *diag)
{
	*token = (struct dx_token){.kind = DX_TOKEN_END};
	int error = skip(lexer, token, diag);
	char byte = lexer->text[lexer->at];
	if (error)
		return error;
	token->column = lexer->at;
	if (!byte)
		error = 0;
	else if (isdigit((unsigned char)byte))
		error = lex_number(lexer, token, diag);
	else if (byte == '"')
		error = lex_text(lexer, token, diag);
	else if (byte == '\'')
		error = lex_character(lexer, token, diag);
	else if (byte == '@')
		error = lex_at(lexer, token, diag);
	else if (is_name_byte(byte, true)) {
		token->kind = DX_TOKEN_NAME;
		lex_name(lexer, token);
	} else
		error = lex_sign(lexer, token, diag);
	token->end = lexer->at;
	return error;
}
