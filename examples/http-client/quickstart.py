"""Asks for a change over HTTP, has it approved, and verifies what became of it.

It needs nothing but Python and a server: `effectmatch serve`. The signature is made by the command
`effectmatch approve`, because a token cannot approve and the server has no key.

  EFFECTMATCH_URL       where the server is, such as http://localhost:8420
  EFFECTMATCH_AGENT     the agent's token:   effectmatch token new billing-agent
  EFFECTMATCH_OPERATOR  the person's token:  effectmatch token new carol --operator
  EFFECTMATCH_KEY       the approver's key:  effectmatch keygen alice
  EFFECTMATCH_COMMAND   the command line; npx effectmatch unless said
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

URL = os.environ["EFFECTMATCH_URL"]
COMMAND = shlex.split(os.environ.get("EFFECTMATCH_COMMAND", "npx effectmatch"))


def call(method, path, token, body=None):
    """One call; a refusal is a problem document with a code."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    request = urllib.request.Request(URL + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refusal:
        problem = json.load(refusal)
        sys.exit(f"{problem['status']} {problem['code']}: {problem['detail']}")


def main():
    agent = os.environ["EFFECTMATCH_AGENT"]
    operator = os.environ["EFFECTMATCH_OPERATOR"]
    ask = {
        "run": "quick start",
        "reason": "invoice 4711 is due",
        "operation": "mark-paid",
        "input": {"invoice": 4711},
    }

    _, request = call("POST", "/v1/requests", agent, ask)
    path = f"/v1/requests/{request['id']}"
    print(request["state"], request["rendering"].splitlines()[0])

    # The approver, on another machine: read what would change, and sign it.
    _, proposal = call("GET", f"{path}/proposal", operator)
    with tempfile.TemporaryDirectory() as folder:
        files = {name: os.path.join(folder, name) for name in ("proposal", "license", "receipt")}
        with open(files["proposal"], "w") as file:
            json.dump(proposal, file)
        sign = ["approve", files["proposal"], "--key", os.environ["EFFECTMATCH_KEY"]]
        subprocess.run([*COMMAND, *sign, "--yes", "--out", files["license"]], check=True,
                       stdout=subprocess.DEVNULL)
        with open(files["license"]) as file:
            call("POST", f"{path}/license", operator, json.load(file))

        # The agent: wait for the verdict, keep the receipt, and verify it offline.
        _, done = call("GET", f"{path}?waitSeconds=50", agent)
        print(done["state"])
        _, receipt = call("GET", f"{path}/receipt", agent)
        _, keys = call("GET", "/v1/receipt-keys", agent)
        with open(files["receipt"], "w") as file:
            json.dump(receipt, file)
        verify = ["verify", files["receipt"], "--key", keys["items"][0]]
        subprocess.run([*COMMAND, *verify], check=True, stdout=subprocess.DEVNULL)
        print("receipt verified")

    # Asking again finds the same request: nothing happens twice.
    status, again = call("POST", "/v1/requests", agent, ask)
    print(status, again["id"] == request["id"], again["state"])


main()
