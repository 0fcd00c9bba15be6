#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/banned.h"

struct hash {
	EVP_MD_CTX *ctx;
};

struct hash *hash_new(void)
{
	struct hash *hash = xcalloc(1, sizeof(*hash));

	hash->ctx = EVP_MD_CTX_new();
	if (!hash->ctx || EVP_DigestInit_ex(hash->ctx, EVP_sha256(), NULL) != 1)
		abort();
	return hash;
}

void hash_part(struct hash *hash, const void *data, size_t len)
{
	uint64_t n = len;

	EVP_DigestUpdate(hash->ctx, &n, sizeof(n));
	EVP_DigestUpdate(hash->ctx, data, len);
}

void hash_part_str(struct hash *hash, const char *s)
{
	hash_part(hash, s, strlen(s));
}

void hash_final(struct hash *hash, char ret_hex[static HASH_HEX_SIZE])
{
	unsigned char md[32];

	EVP_DigestFinal_ex(hash->ctx, md, NULL);
	EVP_MD_CTX_free(hash->ctx);
	free(hash);
	for (int i = 0; i < 32; i++)
		snprintf(ret_hex + 2 * i, 3, "%02x", md[i]);
}

int hash_file(const char *path, char ret_hex[static HASH_HEX_SIZE], struct err *err)
{
	cleanup(close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct hash *hash;
	char chunk[65536];
	ssize_t n;

	if (fd < 0)
		return err_sys(err, errno, "cannot open %s", path);
	hash = hash_new();
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		EVP_DigestUpdate(hash->ctx, chunk, (size_t)n);
	hash_final(hash, ret_hex);
	return n < 0 ? err_sys(err, errno, "cannot read %s", path) : 0;
}
