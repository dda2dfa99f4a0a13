#!/usr/bin/env bash
# Runs a pod on a GPU of the portal, and releases the GPU however the run ends. Usage: run.sh pod.yaml
#
# Environment: GPU_PORTAL_URL, GPU_PORTAL_TOKEN (scopes read and request), GPU_PORTAL_PROJECT, GITHUB_RUN_ID,
# GITHUB_RUN_ATTEMPT; and if the defaults do not suit: OFFERING, HOURS, QUEUE_TIMEOUT_S, RUN_TIMEOUT_S.
set -euo pipefail

pod=${1:?Usage: run.sh pod.yaml}
name=ci-${GITHUB_RUN_ID:?}-${GITHUB_RUN_ATTEMPT:-1} # the same if the step is repeated, another in a new attempt
run_timeout_s=${RUN_TIMEOUT_S:-3000}
work=$(mktemp -d)
export KUBECONFIG=$work/kubeconfig
child=
pauses='2 4 8'

# Runs a command in the background and waits for it: bash traps a signal only between commands, and during `wait`.
run() {
  "$@" &
  child=$!
  local status=0
  wait "$child" || status=$?
  child=
  return "$status"
}

# Repeats a command that exits with one of $repeated: gpu-portal does with 5 without an answer, and with 1 when it is
# refused; kubectl with 1 after either. All have the same effect when repeated.
retry() {
  local pause status
  for pause in $pauses 0; do
    status=0
    run "$@" || status=$?
    if [[ " ${repeated:-1 5} " != *" $status "* || $pause == 0 ]]; then return "$status"; fi
    run sleep "$pause"
  done
}

# Releases by name, since a signal may come before the answer to the request does. Repeats that too: the portal may
# not answer, or may still be working on the request, and then the name is not there yet.
finish() {
  local status=$?
  trap '' INT TERM
  if [[ -n $child ]]; then
    kill -TERM "$child" 2> /dev/null || true
    wait "$child" || true
  fi
  pauses='1 2 4 8' repeated='1 5'
  retry gpu-portal release "$name" --reason "The pipeline ended with $status." || true
  rm -rf "$work"
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

kubeconfig() {
  retry gpu-portal kubeconfig "$name" --file "$KUBECONFIG"
}

# --hours bounds the cost if this machine is lost, and nobody is left to release.
repeated=5 retry gpu-portal request "${OFFERING:-h100/whole}" --name "$name" --idempotency-key "$name" --hours "${HOURS:-1}" \
  --no-requeue --purpose "Pipeline run $name" --wait --timeout "${QUEUE_TIMEOUT_S:-1800}" --release-on-interrupt
kubeconfig
sed "s/NAME/$name/g" "$pod" > "$work/pod.yaml"
retry kubectl apply -f "$work/pod.yaml"

SECONDS=0
phase=
while [[ $phase != Succeeded && $phase != Failed ]]; do
  if ((SECONDS > run_timeout_s)); then
    echo "The pod $name is ${phase:-unknown} after $run_timeout_s s." >&2
    exit 4
  fi
  run sleep 2
  # The kubeconfig is valid for an hour at most. Once the allocation is gone there is none: then the run ends here.
  phase=$(kubectl get pod "$name" --request-timeout=10s -o jsonpath='{.status.phase}') || kubeconfig
done
run kubectl logs "$name" || true # before the release, which deletes the pod
echo "The pod $name is $phase."
[[ $phase == Succeeded ]]
