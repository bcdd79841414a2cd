"""What to cite: the works behind each method, as BibTeX."""

from __future__ import annotations

from collections.abc import Iterable

WORKS = {
    "pillutla2023unleashing": """@inproceedings{pillutla2023unleashing,
  title     = {Unleashing the Power of Randomization in Auditing Differentially Private {ML}},
  author    = {Pillutla, Krishna and Andrew, Galen and Kairouz, Peter and McMahan, H. Brendan and Oprea, Alina and Oh, Sewoong},
  booktitle = {Advances in Neural Information Processing Systems},
  volume    = {36},
  year      = {2023}
}""",
    "steinke2023privacy": """@inproceedings{steinke2023privacy,
  title     = {Privacy Auditing with One (1) Training Run},
  author    = {Steinke, Thomas and Nasr, Milad and Jagielski, Matthew},
  booktitle = {Advances in Neural Information Processing Systems},
  volume    = {36},
  year      = {2023}
}""",
    "waudbysmith2024estimating": """@article{waudbysmith2024estimating,
  title   = {Estimating Means of Bounded Random Variables by Betting},
  author  = {Waudby-Smith, Ian and Ramdas, Aaditya},
  journal = {Journal of the Royal Statistical Society Series B: Statistical Methodology},
  volume  = {86},
  number  = {1},
  pages   = {1--27},
  year    = {2024}
}""",
    "mahloujifar2024auditing": """@misc{mahloujifar2024auditing,
  title         = {Auditing $f$-Differential Privacy in One Run},
  author        = {Mahloujifar, Saeed and Melis, Luca and Chaudhuri, Kamalika},
  year          = {2024},
  eprint        = {2410.22235},
  archiveprefix = {arXiv}
}""",
    "nasr2023tight": """@inproceedings{nasr2023tight,
  title     = {Tight Auditing of Differentially Private Machine Learning},
  author    = {Nasr, Milad and Hayes, Jamie and Steinke, Thomas and Balle, Borja and Tram{\\`e}r, Florian and Jagielski, Matthew
               and Carlini, Nicholas and Terzis, Andreas},
  booktitle = {32nd {USENIX} Security Symposium},
  year      = {2023}
}""",
    "zanellabeguelin2023bayesian": """@inproceedings{zanellabeguelin2023bayesian,
  title     = {{B}ayesian Estimation of Differential Privacy},
  author    = {Zanella-B{\\'e}guelin, Santiago and Wutschitz, Lukas and Tople, Shruti and Salem, Ahmed and R{\\"u}hle, Victor
               and Paverd, Andrew and Naseri, Mohammad and K{\\"o}pf, Boris and Jones, Daniel},
  booktitle = {International Conference on Machine Learning},
  year      = {2023}
}""",
    "clopper1934use": """@article{clopper1934use,
  title   = {The Use of Confidence or Fiducial Limits Illustrated in the Case of the Binomial},
  author  = {Clopper, C. J. and Pearson, E. S.},
  journal = {Biometrika},
  volume  = {26},
  number  = {4},
  pages   = {404--413},
  year    = {1934}
}""",
    "wilson1927probable": """@article{wilson1927probable,
  title   = {Probable Inference, the Law of Succession, and Statistical Inference},
  author  = {Wilson, Edwin B.},
  journal = {Journal of the American Statistical Association},
  volume  = {22},
  number  = {158},
  pages   = {209--212},
  year    = {1927}
}""",
    "brown2001interval": """@article{brown2001interval,
  title   = {Interval Estimation for a Binomial Proportion},
  author  = {Brown, Lawrence D. and Cai, T. Tony and DasGupta, Anirban},
  journal = {Statistical Science},
  volume  = {16},
  number  = {2},
  pages   = {101--133},
  year    = {2001}
}""",
}

_LIFTED = "pillutla2023unleashing"
BEHIND: dict[str, tuple[str, ...]] = {
    "coin-wager": ("steinke2023privacy", "waudbysmith2024estimating"),
    "lifted-betting": (_LIFTED, "waudbysmith2024estimating"),
    "wilson": (_LIFTED, "wilson1927probable"),
    "bernstein": (_LIFTED,),
    "clopper-pearson": ("clopper1934use",),
    "jeffreys": ("brown2001interval",),
    "joint-beta": ("zanellabeguelin2023bayesian",),
    "one-run": ("steinke2023privacy",),
    "one-run-fdp": ("mahloujifar2024auditing",),
    "gaussian-dp": ("nasr2023tight",),
}
"""Works by the name of the method that rests on them."""


def bibtex(methods: Iterable[str]) -> str:
    """The works behind some methods, each once, in the order of the methods; of no others."""
    keys = dict.fromkeys(key for method in methods for key in BEHIND[method])
    return "\n\n".join(WORKS[key] for key in keys)
