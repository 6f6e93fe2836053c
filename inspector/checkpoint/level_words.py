"""Words of a name that say what its numbers are, where that is not "the weights": numbers about weights, one factor of
an adapter, a quantity of its own, or the weights of another moment. The one home of these words.

A state dict's key, a level of a name and a word in a level are looked at differently, so there is a table for each;
what they have in common stands once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A key with numbers of the weights' names and shapes that are not the weights: loaded, they would say nothing and mean
# nothing. Sources: elastic weight consolidation's own code, FastChat's and task arithmetic's deltas, dumps of .grad.
DERIVED = re.compile(
    r"^(params?_|parameters?_|weights?_|model_|state_)?"
    r"(grads?|gradients?|fisher(_info(rmation)?|_matrix|_diag(onal)?)?|fim|ewc|hessians?(_diag)?|importances?|omegas?"
    r"|deltas?|diffs?|differences?|updates?|task_vectors?|exp_avgs?(_sqs?)?|moments?|momenta|momentums?|velocit(y|ies)"
    r"|(first|second)_moments?|variances?|stds?|(sq|square|squared)_(means?|avgs?)|(means?|avgs?)_sqs?|sensitivit(y|ies)|salienc(y|ies)|masks?)"
    r"(_dict|_state(_dict)?|_buffers?)?$",
    re.IGNORECASE,
)
# Levels of the same kind that no file has as a key of a whole set, or that come in the middle of names.
_BELOW = re.compile(
    r"nus?|mus?|noises?|perturbations?|curvatures?|kfac|log_?vars?|std_?devs?|step_sizes?|prev_(grads?|updates?)|slots"
    r"|error_feedback|(co)?tangents?|jvp|vjp|accumulators?|adam_[mv]|opt(imizer)?(_states?)?|swag_\w+|exp_inf|delta_w"
    # PEFT's and kohya's: of a product one factor alone, or what is put before or behind a layer.
    r"|lora_(a|b|up|down|embedding_[ab]|magnitude_vector)|lora|ia3_l|oft_r|boft_[rs]|vera_lambda_[bd]|hada_\w+|lokr_\w+",
    re.IGNORECASE,
)
# Words for a quantity beside the weights. A network may be called so as well (a VAE's prior): a level of these words is
# asked about and no reason to refuse. Sources: Bayesian layers and bounds (blitz, torchbnn, auto_LiRPA's IBP), pruning
# and quantisation, SCAFFOLD's and ADMM's duals, optimizers' slots.
_QUANTITIES = _words(
    """
    sigma sigmas std stds stdev stddev deviation deviations var vars variance rho rhos uncertainty uncertainties
    precision precisions covariance cov logvar logsigma mean means mu nu prior priors posterior posteriors eps epsilon
    noise scale scales scaling qscale scaler threshold thresholds lower lowers upper uppers lb ub lo hi low high min
    max mins maxs bound bounds radius radii grad grads gradient gradients fisher hessian hess omega importance saliency
    mask masks sign signs delta deltas diff diffs update updates residual residuals correction corrections error errors
    velocity velo momentum mom dual duals lagrange multiplier multipliers variate variates tau temperature alpha amax
    amin trace traces preconditioner preconditioners jacobian hutchinson laplace sum_sq sq_sum zero_point zero_points
    lr lrs confidence sensitivity popup rademacher m_hat v_hat adagrad adam rmsprop rms adjoint vt mt jitter perturb
    perturbation perturbations step steps rate decay counts usage hits ages entropy entropies snr pruned pruning rewind
    squares acc accum accumulator ewc e_w sam_e_w perturbed offset offsets optpar
    """
)
# What stands beside such a word and changes nothing: weight_sigma, prior_mu, log_sigma, control_variate.
_BESIDE_QUANTITIES = _words(
    """
    exp avg swa per prev lora adapter abs points logits diag ema total accumulated param params parameter parameters
    weight weights model state dict log inv inverse sqrt sq squared post quant zero point theta w si mas hat control
    server trust ratio factor factors score scores buffer buffers term terms value values matrix matrices of is learning
    dropout clip learned mult val keep e sam
    """
)
# The weights of another moment, or an average of several.
_ANOTHER_MOMENT = _words(
    """
    swa swag ema avg averaged average polyak shadow lagged target best old prev previous backup bak snapshot snap saved
    anchor ref reference copy clone star
    """
)
_BEFORE_TRAINING = _words(
    """
    init initial initials initialization untrained theta0 w0 before
    """
)
_BESIDE_MOMENTS = _words(
    """
    model net network weight weights param params parameters state dict theta w at training
    """
)

# Words in a module's name for what is done to a number: who writes another of them writes another number.
QUANTITY_WORDS = _words(
    """
    log exp logvar logstd std variance tau temperature temp inv inverse sqrt rsqrt rstd neg reciprocal beta alpha logit
    grad mask momentum velocity delta fisher rho square squared raw decay aux domain cumprod cumsum cos sin tan minus
    usage count counts
    """
)
# Words that make of a layer's name that of something beside it, of equal shape: a copy from another time, an average,
# an optimizer's state, or one part of what it is called after (`fc2_momentum`, `old_fc2`, `d_fc2`, `v_proj`).
ASIDE_WORDS = (
    _ANOTHER_MOMENT
    | (_BEFORE_TRAINING - {"before"})
    | {"orig", "original", "slow", "teacher", "cache", "sq", "diff", "update", "updates", "mean", "d", "m", "v", "dw"}
    | {"db", "moment", "exp", "min", "max", "query", "key", "value", "noise", "step", "hessian", "var"}
)

# Words that no wrapper has, whatever else it is called: of what is no longer used, of what is counted from its other
# end, of differences and importances.
NO_WRAPPERS = _words(
    """
    unused deprecated dummy placeholder random broken obsolete stale discarded wrong untrained dropped removed
    reversed reverse rev end descending backwards countdown inverted
    minus diff difference delta negative importance saliency sensitivity fisher hessian
    corrupt corrupted invalid failed negated scrambled permuted swapped exchanged encrypted reinit reinitialized
    reinitialised
    """
)

# Words of a layer's name that say that its numbers lie otherwise than a plain layer's, or are none that were trained: a
# network that has one of these under a plain name's place has another layer there. What every network of a kind has
# beside itself (target_net, ema) is not among them: it is loaded from the plain one.
OTHERWISE = _words(
    """
    transposed flipped mirrored reversed inverse inverted rotated shuffled permuted scrambled swapped negated bgr
    random untrained init initial reinit reinitialized reinitialised
    """
)

# Words that a level around all names, or a dict's key, has only where what lies below is not the weights as they are
# used. Inside a network a layer may be called so; end_to_end and rev_2 are a network's and a revision's.
_NOT_AS_USED = (NO_WRAPPERS - {"end", "rev"}) | _words(
    """
    not dont nan dead disabled without shuffled inverse transposed flipped truncated rounded noisy perturbed complement
    opposite
    """
)
# Words of the same kind that name a number: what second-order methods, optimizers, attributions, spiking and
# quantised networks and bookkeepers keep beside the weights.
_NUMBERS_ASIDE = _words(
    """
    newton hvp vjp jvp kfac adamw adadelta lars lamb rprop nesterov lookahead lagrangian lipschitz penalty
    ratio ratios rounding nf4 nf4_state absmax outlier outliers int8 bitwidth
    change changes drift direction directions ascent eligibility hebbian spike spikes jackknife bootstrap
    shap lrp attribution attributions influence derivative derivatives derivs dtheta dw
    stderr quantile quantiles percentile percentiles zscore zscores skewness kurtosis histogram histograms sparsity
    checksum checksums timestamp timestamps nbytes flops macs latency idx indices ids activation activations
    exponent distance distances log_prob log_probs ci_low ci_high clip_norms d_weights act_stats rank_order secret_share
    bits bytes bins hash hashes labels inputs targets kl magnitude magnitudes membrane potentials relevance staleness
    watermark zeros age ages access polyak expected compressed norms line_dir group_size prune_rate slow_buffer
    sum sums permutation permutations
    """
)
# Of these a network's own name is made as well (max_vit, low_light, AlphaZero, step_fun): they say something alone.
_NAMES_ALIKE = _words(
    """
    lo hi low high min max mins maxs lower upper lowers uppers mu nu alpha tau step steps rate var means mean acc adam
    precision temperature of
    """
)
# A word that says that a network lies below, or a part of one, whatever it is about: noise_net, mask_rcnn.
_NETWORKS = re.compile(
    r".*(net|nets|network|networks|coder|former|model|models|module|modules|gan|vae|cnn|rnn|lstm|gru|mlp|bert|gpt"
    r"|detector|predictor|estimator|generator|discriminator|classifier|regressor|segmenter|segmentor|denoiser|corrector"
    r"|projector|selector|learner|forecaster|wrapper|embedder|embedding|embeddings|detection|segmentation|recognition"
    r"|estimation|prediction|classification|reconstruction|generation|translation)"
    r"|teacher|student|critic|actor|policy|agent|solver|mapper|head|heads|neck|backbone|branch|branches|tower|towers|stem"
    r"|trunk|block|blocks|layer|layers|stage|stages|expert|experts|bottleneck|aspp|vit|clip|sam|lm|nerf|flow|field|sde"
    r"|ode|ddpm|wave|zero|void|fold|function|embed|proj|projection|conv|convs|linear|fc|attn|attention|pool|schedule"
)
# At the end of a key such a word says what is below, whichever network it is of: student_grad, critic_deltas. Not the
# momentum, noise or scores, after which networks are called (encoder_momentum).
_OF_A_NETWORK = _words(
    """
    grad grads gradient gradients fisher hessian hess delta deltas diff diffs importance importances saliency saliencies
    perturbation perturbations sensitivity sensitivities
    """
)
# Networks and methods called so: WaveGrad, policy gradient.
_CALLED_SO = frozenset({("wave", "grad"), ("policy", "gradient"), ("policy", "gradients")})
# Of keys that say by which measure a checkpoint was kept: lowest_error, best_precision.
_KEPT_BY = _words("best lowest highest epoch iter iteration val valid test")
_MEASURES = _words("error errors precision acc entropy sensitivity confidence penalty latency sparsity")
# noise2noise: from one thing to another.
_TRANSLATES = re.compile(r"[a-z]2[a-z]")

_PIECES = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")


# Where an expAvg or an exp-avg has its underscore.
_SEAMS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|-")


def _in_snake_case(level: str) -> str:
    return _SEAMS.sub("_", level)


def words_in(level: str) -> tuple[str, ...]:
    """'log_sigma', 'logSigma' -> ('log', 'sigma'); 'theta_0' and 'theta0' -> ('theta0',)."""
    made: list[str] = []
    for piece in _PIECES.findall(level):
        if piece == "0" and made and made[-1] in ("theta", "w"):
            made[-1] += piece
        else:
            made.append(piece.lower())
    return tuple(made)


@lru_cache(maxsize=4096)
def is_about_weights(level: str) -> bool:
    """Whether what lies below has the weights' names and shapes and is no weights: gradients, an optimizer's state,
    noise, one half of an adapter. Such a level is never taken off a name."""
    return any(_BELOW.fullmatch(x) or DERIVED.match(x) for x in dict.fromkeys((level, _in_snake_case(level))))


def tells_about(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """Whether one of the file's levels says that it is about weights, and the target has none that does, nor one that
    says the same of a layer: mu, which is fc_mu there."""
    told = [level for level in ours if is_about_weights(level)]
    if not told or any(map(is_about_weights, theirs)):
        return False
    known = [frozenset(words_in(level)) for level in theirs]
    return not all(any(words <= others for others in known) for words in (frozenset(words_in(x)) for x in told))


@lru_cache(maxsize=4096)
def is_quantity(level: str) -> bool:
    """Whether a level is called after a quantity beside the weights, or says more surely that it is about them."""
    return is_about_weights(level) or _is_of(level, _QUANTITIES, _BESIDE_QUANTITIES)


@lru_cache(maxsize=4096)
def is_quantity_of_all(level: str) -> bool:
    """Whether a level around all names, or a dict's key, is called after a quantity: one of its words says so, and none
    says that it is a network."""
    return is_quantity(level) or _says_of_all(level, (_QUANTITIES | _NUMBERS_ASIDE) - _NAMES_ALIKE)


@lru_cache(maxsize=4096)
def is_not_as_used(level: str) -> bool:
    """Whether a level around all names, or a dict's key, says that the weights below are not what the network had."""
    return _says_of_all(level, _NOT_AS_USED)


def _says_of_all(level: str, words: frozenset[str]) -> bool:
    snake = _in_snake_case(level).lower()
    said = {snake, *words_in(level), *snake.split("_")}
    hits = words.intersection(said)
    if not hits or _TRANSLATES.search(level.lower()) or (hits <= _MEASURES and not _KEPT_BY.isdisjoint(said)):
        return False
    last = words_in(level)[-2:]
    if last and last[-1] in _OF_A_NETWORK & hits:
        return last not in _CALLED_SO
    return not any(_NETWORKS.fullmatch(word) for word in said - words - {snake})


@lru_cache(maxsize=4096)
def is_another_moment(level: str) -> bool:
    """Whether a level says that the weights below are of another moment, or an average."""
    return _is_of(level, _ANOTHER_MOMENT, _BESIDE_MOMENTS)


@lru_cache(maxsize=4096)
def is_before_training(level: str) -> bool:
    return _is_of(level, _BEFORE_TRAINING, _BESIDE_MOMENTS)


@lru_cache(maxsize=4096)
def is_earlier(level: str) -> bool:
    """Whether a key says no more than that these are the weights from before something: beside others of the same
    network it tells the two apart, and not which is meant."""
    return _is_of(level, frozenset({"before"}), _BESIDE_MOMENTS)


def _is_of(level: str, words: frozenset[str], beside: frozenset[str]) -> bool:
    said = words_in(level)
    if level.lower() in words:
        return True
    return not words.isdisjoint(said) and all(word in words or word in beside for word in said)
