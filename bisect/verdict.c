#include "bisect/verdict.h"

#include <errno.h>
#include <math.h>

#include "bisect/stats.h"
#include "base/banned.h"

#define CONFIDENCE 0.95
#define P_DISJOINT 0.005
#define P_OVERLAP 0.0005
#define OVERLAP_SAMPLES 10
#define CONSTANT_SAMPLES 4
#define MIN_CALIBRATION 12
#define MAJORITY 0.8

size_t calibration_max(size_t n)
{
	return n * 4 > MIN_CALIBRATION ? n * 4 : MIN_CALIBRATION;
}

/* How many of the pairs (one of small, one of large) are not in that order? */
static size_t misordered(const double *small, size_t nsmall, const double *large, size_t nlarge)
{
	size_t n = 0;

	for (size_t i = 0; i < nsmall; i++)
		for (size_t j = 0; j < nlarge; j++)
			n += !(small[i] < large[j]);
	return n;
}

static int is_constant(const double *x, size_t n)
{
	return stats_min(x, n) == stats_max(x, n);
}

/* Is large above small beyond the noise? p is Welch's for just that. */
static int is_above(
	const double *small, size_t nsmall, const double *large, size_t nlarge, double p)
{
	size_t fewest = nsmall < nlarge ? nsmall : nlarge;
	size_t wrong = misordered(small, nsmall, large, nlarge);

	if (is_constant(small, nsmall) && is_constant(large, nlarge) && fewest < CONSTANT_SAMPLES)
		return 0;
	if (wrong == 0)
		return p < P_DISJOINT;
	return fewest >= OVERLAP_SAMPLES && wrong <= nsmall * nlarge / 10 && p < P_OVERLAP;
}

void calibration_judge(const double *good, size_t ngood, const double *bad, size_t nbad,
	enum better better, size_t max_samples, struct calibration *ret)
{
	size_t fewest = ngood < nbad ? ngood : nbad;
	struct calibration c = {.state = CALIBRATION_MORE};
	struct stats_welch w;
	int greater, less, equal;

	stats_welch(good, ngood, bad, nbad, CONFIDENCE, &w);
	c.good = stats_median(good, ngood);
	c.bad = stats_median(bad, nbad);
	c.effect = w.difference;
	c.low = w.low;
	c.high = w.high;
	c.p = better == BETTER_HIGHER ? w.p_less : w.p_greater;
	greater = is_above(good, ngood, bad, nbad, w.p_greater);
	less = is_above(bad, nbad, good, ngood, w.p_less);
	equal = fewest >= CONSTANT_SAMPLES && is_constant(good, ngood) && is_constant(bad, nbad) &&
		good[0] == bad[0];
	if (better == BETTER_HIGHER ? less : greater) {
		c.state = CALIBRATION_DIFFERENT;
	} else if (better == BETTER_HIGHER ? greater : less) {
		c.state = CALIBRATION_SAME;
		c.reversed = 1;
	} else if (equal || fewest >= max_samples) {
		c.state = CALIBRATION_SAME;
	}
	*ret = c;
}

double threshold_midway(double good, double bad)
{
	if (good > 0 && bad > 0)
		return sqrt(good) * sqrt(bad);
	return good / 2 + bad / 2;
}

double threshold_percent(double good, double percent)
{
	return good + fabs(good) * percent / 100;
}

static int is_bad(double sample, double threshold, enum better better)
{
	return better == BETTER_HIGHER ? sample < threshold : sample > threshold;
}

int threshold_check(double threshold, double good, double bad, enum better better, struct err *err)
{
	const char *above = better == BETTER_HIGHER ? "below" : "above";
	const char *direction = better == BETTER_HIGHER ? "higher" : "lower";

	if (is_bad(good, threshold, better))
		return err_set(err, EDOM,
			"the good end measures %.6g, which is %s the threshold of %.6g and so on "
			"its bad side (%s is better)",
			good, above, threshold, direction);
	if (!is_bad(bad, threshold, better))
		return err_set(err, EDOM,
			"the bad end measures %.6g, which is not %s the threshold of %.6g and so "
			"on its good side (%s is better)",
			bad, above, threshold, direction);
	return 0;
}

enum judgement commit_judge(
	const double *samples, size_t n, size_t wanted, double threshold, enum better better)
{
	size_t nbad = 0, fewer, most = wanted * 3;

	if (n == 0 || n < wanted)
		return JUDGED_MORE;
	for (size_t i = 0; i < n; i++)
		nbad += is_bad(samples[i], threshold, better);
	fewer = nbad < n - nbad ? nbad : n - nbad;
	if (fewer == 0)
		return nbad ? JUDGED_BAD : JUDGED_GOOD;
	/* The minority only grows: when it is too large for all samples, it is too large now. */
	if (n < most)
		return (double)fewer > (1 - MAJORITY) * (double)most + 1e-9 ? JUDGED_UNSURE
									    : JUDGED_MORE;
	if ((double)fewer > (1 - MAJORITY) * (double)n + 1e-9)
		return JUDGED_UNSURE;
	/* With four fifths on one side, the median is on that side. */
	return nbad > n - nbad ? JUDGED_BAD : JUDGED_GOOD;
}
