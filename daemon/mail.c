#include "daemon/mail.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <gmime/gmime.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/banned.h"

/* RFC 5321 4.5.3.1 and RFC 5322 2.1.1. */
#define LOCAL_MAX 64
#define ADDRESS_MAX 254
#define LINE_MAX_BYTES 998
/* So many bytes fit an encoded word in base64 (RFC 2047 2). */
#define WORD_BYTES 45

static void cleanup_unref(void *p)
{
	if (*(void **)p)
		g_object_unref(*(void **)p);
}

static void cleanup_gfree(void *p)
{
	g_free(*(void **)p);
}

static bool has_control(const char *s)
{
	for (; *s; s++)
		if (iscntrl((unsigned char)*s))
			return true;
	return false;
}

static bool is_ascii(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (s[i] & 0x80)
			return false;
	return true;
}

/* Host names as RFC 1123 has them, or a literal such as [192.0.2.1]. */
static bool is_domain(const char *s)
{
	size_t len = strlen(s);
	char before = '.';

	if (s[0] == '[')
		return len > 2 && s[len - 1] == ']' &&
		       strspn(s + 1, "0123456789abcdefABCDEFIPv:.") == len - 2;
	for (; *s; before = *s++) {
		if (!isalnum((unsigned char)*s) && *s != '-' && *s != '.')
			return false;
		if ((before == '.' && (*s == '.' || *s == '-')) || (before == '-' && *s == '.'))
			return false;
	}
	return before != '.' && before != '-';
}

/* The parser goes on after a flaw; this keeps the text where it met the first one. */
static void note_flaw(gint64 offset, GMimeParserWarning code, const gchar *item, gpointer arg)
{
	char **flaw = arg;

	(void)offset, (void)code;
	if (!*flaw)
		*flaw = xstrdup(item ? item : "");
}

static int bad_address(const char *text, struct err *err)
{
	return err_set(err, EINVAL,
		"\"%.200s\" is not a mail address (write USER@HOST or NAME <USER@HOST>)", text);
}

/* What GMime lets pass, but a mail server would not. */
static int check_mailbox(InternetAddress *ia, const char *list, struct err *err)
{
	const char *addr, *idn, *at;

	if (!INTERNET_ADDRESS_IS_MAILBOX(ia))
		return err_set(err, EINVAL, "\"%.200s\" is a group of addresses, not an address",
			internet_address_get_name(ia));
	if (internet_address_get_name(ia) && has_control(internet_address_get_name(ia)))
		return err_set(err, EINVAL, "the name in \"%.200s\" has a control character", list);
	addr = internet_address_mailbox_get_addr(INTERNET_ADDRESS_MAILBOX(ia));
	idn = internet_address_mailbox_get_idn_addr(INTERNET_ADDRESS_MAILBOX(ia));
	at = strrchr(idn, '@');
	if (!at || at == idn || !at[1])
		return bad_address(addr, err);
	if (!is_ascii(idn, (size_t)(at - idn)))
		return err_set(err, EINVAL,
			"\"%.200s\" has letters before the @ that mail servers do not take (only "
			"ASCII)",
			addr);
	if (at - idn > LOCAL_MAX || strlen(idn) > ADDRESS_MAX)
		return err_set(err, EINVAL, "\"%.80s...\" is too long for a mail address", addr);
	return is_domain(at + 1) ? 0 : bad_address(addr, err);
}

/* Read a list strictly. *ret is a new reference. */
static int parse_list(const char *list, InternetAddressList **ret, struct err *err)
{
	cleanup(unref) InternetAddressList *found = NULL;
	cleanup(free) char *flaw = NULL;
	GMimeParserOptions *options;
	int r;

	g_mime_init();
	if (has_control(list))
		return err_set(err, EINVAL,
			"a mail address cannot hold line ends or other control "
			"characters");
	if (!list[strspn(list, " ,")])
		return err_set(err, EINVAL, "there is no mail address");
	options = g_mime_parser_options_new();
	g_mime_parser_options_set_address_compliance_mode(options, GMIME_RFC_COMPLIANCE_STRICT);
	g_mime_parser_options_set_warning_callback(options, note_flaw, &flaw);
	found = internet_address_list_parse(options, list);
	g_mime_parser_options_free(options);
	if (!found || flaw)
		return bad_address(flaw ? flaw : list, err);
	for (int i = 0; i < internet_address_list_length(found); i++) {
		InternetAddress *ia = internet_address_list_get_address(found, i);

		r = check_mailbox(ia, list, err);
		if (r < 0)
			return r;
		internet_address_set_charset(ia, "utf-8");
	}
	*ret = steal(&found);
	return 0;
}

int mail_check_addresses(const char *list, struct err *err)
{
	cleanup(unref) InternetAddressList *found = NULL;

	return parse_list(list, &found, err);
}

/* The id without its angle brackets; free it. NULL when it is none. */
static char *bare_id(const char *id)
{
	size_t len;

	id += strspn(id, " ");
	len = strlen(id);
	while (len && id[len - 1] == ' ')
		len--;
	if (len > 2 && id[0] == '<' && id[len - 1] == '>') {
		id++;
		len -= 2;
	}
	for (size_t i = 0; i < len; i++)
		if (!isgraph((unsigned char)id[i]) || id[i] == '<' || id[i] == '>')
			return NULL;
	return len && len <= LINE_MAX_BYTES - 32 && memchr(id, '@', len) ? xstrndup(id, len) : NULL;
}

int mail_check_message_id(const char *id, struct err *err)
{
	cleanup(free) char *bare = bare_id(id);

	if (bare)
		return 0;
	if (has_control(id))
		return err_set(err, EINVAL,
			"a Message-ID cannot hold line ends or other control "
			"characters");
	return err_set(err, EINVAL, "\"%.200s\" is not a Message-ID (write <ID@HOST>)", id);
}

int mail_rcpts_parse(const char *list, struct mail_rcpts *ret, struct err *err)
{
	cleanup(unref) InternetAddressList *found = NULL;
	int r = parse_list(list, &found, err);

	if (r < 0)
		return r;
	for (int i = 0; i < internet_address_list_length(found); i++) {
		InternetAddress *ia = internet_address_list_get_address(found, i);
		const char *addr =
			internet_address_mailbox_get_idn_addr(INTERNET_ADDRESS_MAILBOX(ia));
		size_t known = 0;

		while (known < ret->n && strcmp(ret->v[known].addr, addr) != 0)
			known++;
		if (known < ret->n)
			continue;
		ALLOC_GROW(ret->v, ret->n, ret->cap);
		ret->v[ret->n++] = (struct mail_rcpt){xstrdup(addr), MAIL_LEFT, NULL};
	}
	return 0;
}

void mail_rcpts_release(struct mail_rcpts *rcpts)
{
	for (size_t i = 0; i < rcpts->n; i++) {
		free(rcpts->v[i].addr);
		free(rcpts->v[i].reply);
	}
	free(rcpts->v);
	*rcpts = (struct mail_rcpts){NULL, 0, 0};
}

/*
 * The gentlest transfer encoding that keeps every byte: none for ASCII text (so that patches and
 * tables can be read and applied as they are), quoted-printable or base64 for the rest.
 */
static GMimeContentEncoding body_encoding(const char *body)
{
	size_t len = strlen(body), line = 0;
	bool plain = true;

	for (size_t i = 0; i < len && plain; i++) {
		unsigned char c = (unsigned char)body[i];

		if (c == '\r' && body[i + 1] == '\n')
			continue;
		line = c == '\n' ? 0 : line + 1;
		plain = (isprint(c) || c == '\n' || c == '\t') && line <= LINE_MAX_BYTES;
	}
	if (plain)
		return GMIME_CONTENT_ENCODING_7BIT;
	if (g_mime_utils_best_encoding((const unsigned char *)body, len) ==
		GMIME_CONTENT_ENCODING_BASE64)
		return GMIME_CONTENT_ENCODING_BASE64;
	return GMIME_CONTENT_ENCODING_QUOTEDPRINTABLE;
}

/* The text part. Base64 carries CRLF line ends (RFC 2045 6.8), the others get theirs later. */
static GMimePart *body_part(const char *body)
{
	GMimeContentEncoding encoding = body_encoding(body);
	GMimePart *part = g_mime_part_new_with_type("text", "plain");
	cleanup(unref) GMimeStream *stream = g_mime_stream_mem_new();
	cleanup(unref) GMimeDataWrapper *content = NULL;

	for (const char *p = body; *p;) {
		size_t n = strcspn(p, "\n");
		size_t cr = p[n] == '\n' && n > 0 && p[n - 1] == '\r';

		g_mime_stream_write(stream, p, n - cr);
		p += n;
		if (*p == '\n')
			p++;
		g_mime_stream_write_string(
			stream, encoding == GMIME_CONTENT_ENCODING_BASE64 ? "\r\n" : "\n");
	}
	g_mime_stream_reset(stream);
	content = g_mime_data_wrapper_new_with_stream(stream, GMIME_CONTENT_ENCODING_DEFAULT);
	g_mime_part_set_content(part, content);
	g_mime_part_set_content_encoding(part, encoding);
	g_mime_object_set_content_type_parameter(GMIME_OBJECT(part), "charset", "utf-8");
	return part;
}

/* Must a name or subject be encoded? Also when it only looks as if it were, or fits no line. */
static bool needs_words(const char *s)
{
	size_t len = strlen(s);

	return !is_ascii(s, len) || strstr(s, "=?") || len > LINE_MAX_BYTES / 2;
}

/*
 * Text as RFC 2047 words of at most 75 characters, a line each, cut between characters. GMime
 * makes longer words, which strict readers do not decode.
 */
static void add_words(struct buf *out, const char *text)
{
	while (*text) {
		size_t n = strnlen(text, WORD_BYTES + 1);
		cleanup(gfree) char *word = NULL;

		if (n > WORD_BYTES)
			do
				n--;
			while (n > 1 && (text[n] & 0xc0) == 0x80);
		word = g_base64_encode((const guchar *)text, n);
		text += n;
		buf_addf(out, "=?utf-8?B?%s?=%s", word, *text ? "\n " : "");
	}
}

static void set_header(GMimeMessage *message, const char *name, const char *value)
{
	g_mime_object_set_header(GMIME_OBJECT(message), name, value, "utf-8");
}

/* A header whose text is folded and encoded already. */
static void set_raw(GMimeMessage *message, const char *name, struct buf *text)
{
	GMimeHeaderList *list = g_mime_object_get_header_list(GMIME_OBJECT(message));

	buf_addc(text, '\n');
	set_header(message, name, "");
	g_mime_header_set_raw_value(g_mime_header_list_get_header(list, name), buf_str(text));
}

/* Put the list into a header, an address a line. */
static void set_addresses(GMimeMessage *message, const char *header, InternetAddressList *list)
{
	cleanup(buf_release) struct buf out = BUF_INIT;
	int n = internet_address_list_length(list);

	for (int i = 0; i < n; i++) {
		InternetAddress *ia = internet_address_list_get_address(list, i);
		const char *name = internet_address_get_name(ia);

		buf_adds(&out, i ? ",\n " : " ");
		if (name && needs_words(name)) {
			add_words(&out, name);
			buf_addf(&out, "\n <%s>",
				internet_address_mailbox_get_idn_addr(
					INTERNET_ADDRESS_MAILBOX(ia)));
		} else {
			cleanup(gfree) char *text = internet_address_to_string(ia, NULL, TRUE);

			buf_adds(&out, text);
		}
	}
	set_raw(message, header, &out);
}

/* The subject, with blanks for control characters. */
static void set_subject(GMimeMessage *message, const char *text)
{
	cleanup(buf_release) struct buf out = BUF_INIT;
	cleanup(free) char *subject = xstrdup(text);

	for (char *p = subject; *p; p++)
		if (iscntrl((unsigned char)*p))
			*p = ' ';
	if (!needs_words(subject)) {
		set_header(message, "Subject", subject);
		return;
	}
	buf_addc(&out, ' ');
	add_words(&out, subject);
	set_raw(message, "Subject", &out);
}

/* Subject, ids and date; none of them can hold a line end any more. */
static int set_headers(GMimeMessage *message, const struct mail *mail, struct err *err)
{
	cleanup(free) char *id = bare_id(mail->message_id);
	GDateTime *date = g_date_time_new_from_unix_utc(mail->date);

	if (!date)
		return err_set(err, EINVAL, "the mail's date is out of range");
	g_mime_message_set_date(message, date);
	g_date_time_unref(date);
	if (!id)
		return mail_check_message_id(mail->message_id, err);
	g_mime_message_set_message_id(message, id);
	set_subject(message, mail->subject);
	if (mail->in_reply_to) {
		cleanup(free) char *parent = bare_id(mail->in_reply_to);
		cleanup(free) char *ref = parent ? xasprintf("<%s>", parent) : NULL;

		if (!ref)
			return mail_check_message_id(mail->in_reply_to, err);
		set_header(message, "In-Reply-To", ref);
		set_header(message, "References", ref);
	}
	set_header(message, "Auto-Submitted", "auto-generated");
	return 0;
}

int mail_compose(const struct mail *mail, enum mail_lines lines, struct buf *ret, struct err *err)
{
	cleanup(unref) InternetAddressList *from = NULL, *to = NULL;
	cleanup(unref) GMimeMessage *message = NULL;
	cleanup(unref) GMimePart *part = NULL;
	cleanup(gfree) char *text = NULL;
	GMimeFormatOptions *format;
	int r;

	r = parse_list(mail->from, &from, err);
	if (r == 0 && internet_address_list_length(from) != 1)
		r = err_set(err, EINVAL, "a mail has one sender, \"%.200s\" are %d", mail->from,
			internet_address_list_length(from));
	if (r < 0)
		return err_wrap(err, "the sender");
	r = parse_list(mail->to, &to, err);
	if (r < 0)
		return r;
	message = g_mime_message_new(TRUE);
	set_addresses(message, "From", from);
	set_addresses(message, "To", to);
	r = set_headers(message, mail, err);
	if (r < 0)
		return r;
	part = body_part(mail->body);
	g_mime_message_set_mime_part(message, GMIME_OBJECT(part));
	format = g_mime_format_options_new();
	g_mime_format_options_set_newline_format(
		format, lines == MAIL_CRLF ? GMIME_NEWLINE_FORMAT_DOS : GMIME_NEWLINE_FORMAT_UNIX);
	text = g_mime_object_to_string(GMIME_OBJECT(message), format);
	g_mime_format_options_free(format);
	buf_adds(ret, text);
	return 0;
}
