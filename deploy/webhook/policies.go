package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/informers"
)

// loadPolicies returns the MutatingAdmissionPolicies in the YAML files of a folder, compiled, with their bindings.
// Other kinds in these files are skipped. It fails if the folder has no policy, or a policy has no binding or does not
// compile. params lists the parameters of every policy that has a paramKind.
func loadPolicies(folder string, params informers.GenericInformer) ([]mutating.PolicyHook, error) {
	objects, err := readObjects(folder)
	if err != nil {
		return nil, err
	}
	var policies []*v1.MutatingAdmissionPolicy
	bindings := map[string][]*v1.MutatingAdmissionPolicyBinding{}
	for _, object := range objects {
		switch object.GetKind() {
		case "MutatingAdmissionPolicy":
			policy := &v1.MutatingAdmissionPolicy{}
			err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, policy, true)
			policy.Spec.MatchConstraints = withDefaults(policy.Spec.MatchConstraints)
			policies = append(policies, policy)
		case "MutatingAdmissionPolicyBinding":
			binding := &v1.MutatingAdmissionPolicyBinding{}
			err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, binding, true)
			binding.Spec.MatchResources = withDefaults(binding.Spec.MatchResources)
			bindings[binding.Spec.PolicyName] = append(bindings[binding.Spec.PolicyName], binding)
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	var hooks []mutating.PolicyHook
	for _, policy := range policies {
		evaluator, err := compile(policy)
		if err != nil {
			return nil, fmt.Errorf("MutatingAdmissionPolicy %s: %w", policy.Name, err)
		}
		if len(bindings[policy.Name]) == 0 {
			return nil, fmt.Errorf("MutatingAdmissionPolicy %s has no binding in %s", policy.Name, folder)
		}
		hook := mutating.PolicyHook{Policy: policy, Bindings: bindings[policy.Name], Evaluator: evaluator}
		if policy.Spec.ParamKind != nil {
			hook.ParamInformer, hook.ParamScope = params, meta.RESTScopeNamespace
		}
		hooks = append(hooks, hook)
	}
	if len(hooks) == 0 {
		return nil, fmt.Errorf("no MutatingAdmissionPolicy in %s", folder)
	}
	return hooks, nil
}

// readObjects returns the objects in the YAML files of a folder, in the order of their file names.
func readObjects(folder string) ([]unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var objects []unstructured.Unstructured
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		documents := yaml.NewYAMLToJSONDecoder(bytes.NewReader(content))
		for {
			var object map[string]any
			if err := documents.Decode(&object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			objects = append(objects, unstructured.Unstructured{Object: object})
		}
	}
	return objects, nil
}

// withDefaults returns the match resources with the defaults that the API server fills in.
func withDefaults(resources *v1.MatchResources) *v1.MatchResources {
	if resources == nil {
		resources = &v1.MatchResources{}
	}
	if resources.NamespaceSelector == nil {
		resources.NamespaceSelector = &metav1.LabelSelector{}
	}
	if resources.ObjectSelector == nil {
		resources.ObjectSelector = &metav1.LabelSelector{}
	}
	if resources.MatchPolicy == nil {
		equivalent := v1.Equivalent
		resources.MatchPolicy = &equivalent
	}
	for _, rules := range [][]v1.NamedRuleWithOperations{resources.ResourceRules, resources.ExcludeResourceRules} {
		for i := range rules {
			if rules[i].Scope == nil {
				all := v1.AllScopes
				rules[i].Scope = &all
			}
		}
	}
	return resources
}

// compile returns the evaluator of a policy; the error joins those of all its expressions.
func compile(policy *v1.MutatingAdmissionPolicy) (mutating.PolicyEvaluator, error) {
	none := mutating.PolicyEvaluator{}
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		return none, err
	}
	options := plugincel.OptionalVariableDeclarations{HasParams: policy.Spec.ParamKind != nil, HasAuthorizer: true}
	var problems []error
	for _, variable := range policy.Spec.Variables {
		result := compiler.CompileAndStoreVariable(
			&mutating.Variable{Name: variable.Name, Expression: variable.Expression}, options, environment.StoredExpressions)
		if result.Error != nil {
			problems = append(problems, fmt.Errorf("variable %s: %w", variable.Name, result.Error))
		}
	}
	conditions := make([]plugincel.ExpressionAccessor, len(policy.Spec.MatchConditions))
	for i := range policy.Spec.MatchConditions {
		conditions[i] = (*matchconditions.MatchCondition)(&policy.Spec.MatchConditions[i])
	}
	var matcher matchconditions.Matcher
	if len(conditions) > 0 {
		evaluator := compiler.CompileCondition(conditions, options, environment.StoredExpressions)
		problems = append(problems, evaluator.CompilationErrors()...)
		matcher = matchconditions.NewMatcher(evaluator, policy.Spec.FailurePolicy, "policy", "validate", policy.Name)
	}
	options.HasPatchTypes = true
	patchers := make([]patch.Patcher, len(policy.Spec.Mutations))
	for i, mutation := range policy.Spec.Mutations {
		var evaluator plugincel.MutatingEvaluator
		switch {
		case mutation.JSONPatch != nil:
			expression := &patch.JSONPatchCondition{Expression: mutation.JSONPatch.Expression}
			evaluator = compiler.CompileMutatingEvaluator(expression, options, environment.StoredExpressions)
			patchers[i] = patch.NewJSONPatcher(evaluator)
		case mutation.ApplyConfiguration != nil:
			expression := &patch.ApplyConfigurationCondition{Expression: mutation.ApplyConfiguration.Expression}
			evaluator = compiler.CompileMutatingEvaluator(expression, options, environment.StoredExpressions)
			patchers[i] = patch.NewApplyConfigurationPatcher(evaluator)
		default:
			return none, fmt.Errorf("mutation %d has neither jsonPatch nor applyConfiguration", i)
		}
		problems = append(problems, evaluator.CompilationErrors()...)
	}
	return mutating.PolicyEvaluator{Matcher: matcher, Mutators: patchers, CompositedCompiler: compiler}, errors.Join(problems...)
}
