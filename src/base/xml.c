/* SPDX-License-Identifier: MIT */
#include "base/xml.h"

#include <string.h>

#include "base/text.h"

static const char replacement[] = "\xef\xbf\xbd";

/* U+FFFE and U+FFFF are no characters. */
static bool is_no_character(const unsigned char *at, unsigned length)
{
	return length == 3 && at[0] == 0xef && at[1] == 0xbf && at[2] >= 0xbe;
}

/* What stands for the character; NULL: itself. */
static const char *entity_of(unsigned char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\t':
		return "&#9;";
	case '\n':
		return "&#10;";
	default:
		return c < ' ' ? replacement : NULL;
	}
}

void xml_text(struct sink *out, const char *text)
{
	for (const unsigned char *at = (const unsigned char *)text; *at;) {
		unsigned length = text_utf8_length(at);
		const char *entity = !length || is_no_character(at, length) ? replacement : entity_of(*at);
		if (entity)
			sink_text(out, entity);
		else
			sink_bytes(out, (const char *)at, length);
		at += length ? length : 1;
	}
}

void xml_attribute(struct sink *out, const char *name, const char *text)
{
	sink_format(out, " %s=\"", name);
	xml_text(out, text);
	sink_put(out, '"');
}
