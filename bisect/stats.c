#include "bisect/stats.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/banned.h"

static int compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

double stats_median(const double *x, size_t n)
{
	cleanup(free) double *sorted = xreallocarray(NULL, n, sizeof(*sorted));

	memcpy(sorted, x, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare);
	return n % 2 ? sorted[n / 2] : sorted[n / 2 - 1] / 2 + sorted[n / 2] / 2;
}

static long double mean(const double *x, size_t n)
{
	long double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += x[i];
	return sum / n;
}

/* The two passes matter: the sum of squares alone loses everything to a large common level. */
static long double variance(const double *x, size_t n)
{
	long double m = mean(x, n), sum = 0;

	if (n < 2 || stats_min(x, n) == stats_max(x, n))
		return 0;
	for (size_t i = 0; i < n; i++)
		sum += (x[i] - m) * (x[i] - m);
	return sum / (n - 1);
}

double stats_mean(const double *x, size_t n)
{
	return (double)mean(x, n);
}

double stats_sd(const double *x, size_t n)
{
	return (double)sqrtl(variance(x, n));
}

double stats_min(const double *x, size_t n)
{
	double min = x[0];

	for (size_t i = 1; i < n; i++)
		min = x[i] < min ? x[i] : min;
	return min;
}

double stats_max(const double *x, size_t n)
{
	double max = x[0];

	for (size_t i = 1; i < n; i++)
		max = x[i] > max ? x[i] : max;
	return max;
}

void stats_welch(const double *a, size_t na, const double *b, size_t nb, double confidence,
	struct stats_welch *ret)
{
	long double va = variance(a, na) / na, vb = variance(b, nb) / nb;
	long double difference = mean(b, nb) - mean(a, na), error = sqrtl(va + vb);
	struct stats_welch w = {.difference = (double)difference, .p_less = 1, .p_greater = 1};
	double reach;

	if (na < 2 || nb < 2) {
		w.low = -INFINITY;
		w.high = INFINITY;
	} else if (error == 0) {
		w.df = (double)(na + nb - 2);
		w.low = w.high = w.difference;
		w.t = difference == 0 ? 0 : difference > 0 ? INFINITY : -INFINITY;
		w.p_less = difference < 0 ? 0 : 1;
		w.p_greater = difference > 0 ? 0 : 1;
	} else {
		w.t = (double)(difference / error);
		w.df = (double)((va + vb) * (va + vb) / (va * va / (na - 1) + vb * vb / (nb - 1)));
		reach = gsl_cdf_tdist_Pinv(0.5 + confidence / 2, w.df) * (double)error;
		w.low = w.difference - reach;
		w.high = w.difference + reach;
		w.p_less = gsl_cdf_tdist_P(w.t, w.df);
		w.p_greater = gsl_cdf_tdist_Q(w.t, w.df);
	}
	*ret = w;
}
