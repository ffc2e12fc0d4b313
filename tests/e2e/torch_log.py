#!/usr/bin/env python3
"""The script in docs/guide/advise.md that logs a job under DistributedDataParallel is run as it
stands there, by two processes, and `anytime advise` reads what it writes."""
import json
import re
import subprocess
import sys
import unittest

import support

RANKS, STEPS, BATCH = 2, 12, 8
AROUND = """
import sys, torch
torch.set_num_threads(1)
rank = int(sys.argv[1])
torch.distributed.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank,
                                     world_size={ranks})
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
loss_fn = torch.nn.CrossEntropyLoss()
loader = [(torch.randn({batch}, 4), torch.zeros({batch}, dtype=torch.long))] * {steps}
"""
# The threads of gloo may still drop objects of Python that belong to the last step. When Python
# ends at that time, it aborts them and with them the process; the log is complete by then.
AFTER = """
import os
os._exit(0)
"""


class TorchLog(support.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        look = "import torch; assert torch.distributed.is_available()"
        if subprocess.run([sys.executable, "-c", look], capture_output=True, check=False,
                          timeout=300).returncode:
            raise unittest.SkipTest(f"{sys.executable} has no PyTorch (package python3-torch)")

    def test_the_documented_script_logs_a_ddp_job(self):
        page = (support.ROOT / "docs" / "guide" / "advise.md").read_text()
        code = re.search(r"```python\n(.*?)```", page, re.DOTALL).group(1)
        self.assertLessEqual(len(code.splitlines()), 13)  # an import and twelve lines
        script = self.folder / "job.py"
        script.write_text(AROUND.format(ranks=RANKS, batch=BATCH, steps=STEPS) + code + AFTER)
        ranks = [subprocess.Popen([sys.executable, str(script), str(rank), str(self.folder / "at")],
                                  cwd=self.folder, stderr=subprocess.PIPE, text=True)
                 for rank in range(RANKS)]
        for rank in ranks:
            said = rank.communicate(timeout=300)[1]
            self.assertEqual(rank.returncode, 0, said)
        logs = [self.folder / f"rank{rank}.csv" for rank in range(RANKS)]
        advice = json.loads(self.anytime("advise", *logs, "--json").out)
        self.assertEqual({key: advice["log"][key] for key in ("workers", "steps", "batch")},
                         {"workers": RANKS, "steps": STEPS, "batch": BATCH})
        self.assertGreaterEqual(advice["ceiling"], 1)


if __name__ == "__main__":
    support.main()
