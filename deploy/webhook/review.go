package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/authentication/user"
)

// The API server sends at most an object and its old form, each of at most 3 MiB.
const maxReviewBytes = 8 << 20

// reviewer answers admission reviews (admission.k8s.io/v1) as the API server evaluates MutatingAdmissionPolicies.
type reviewer struct {
	dispatcher generic.Dispatcher[mutating.PolicyHook]
	policies   []mutating.PolicyHook
	interfaces admission.ObjectInterfaces
}

func newReviewer(dispatcher generic.Dispatcher[mutating.PolicyHook], policies []mutating.PolicyHook) *reviewer {
	interfaces := admission.NewObjectInterfacesFromScheme(runtime.NewScheme())
	return &reviewer{dispatcher: dispatcher, policies: policies, interfaces: interfaces}
}

func (r *reviewer) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var review admissionv1.AdmissionReview
	err := json.NewDecoder(http.MaxBytesReader(w, request.Body, maxReviewBytes)).Decode(&review)
	if err != nil || review.Request == nil {
		http.Error(w, "the body is no AdmissionReview of admission.k8s.io/v1 with a request", http.StatusBadRequest)
		return
	}
	review.Response = r.respond(request.Context(), review.Request)
	review.Response.UID = review.Request.UID
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	// What cannot be sent any more fails the API server's call, and failurePolicy Fail refuses the request.
	_ = json.NewEncoder(w).Encode(review)
}

// respond returns the patch that the policies make of the request's object. What cannot be evaluated is refused.
func (r *reviewer) respond(ctx context.Context, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	patch, err := r.patch(ctx, request)
	if err != nil {
		refusal := apierrors.NewInternalError(err)
		errors.As(err, &refusal)
		return &admissionv1.AdmissionResponse{Result: &refusal.ErrStatus}
	}
	response := &admissionv1.AdmissionResponse{Allowed: true}
	if patch != nil {
		patchType := admissionv1.PatchTypeJSONPatch
		response.Patch, response.PatchType = patch, &patchType
	}
	return response
}

// patch returns a JSON patch (RFC 6902), or nil if no policy changes the object.
func (r *reviewer) patch(ctx context.Context, request *admissionv1.AdmissionRequest) ([]byte, error) {
	object, err := decode(request.Object.Raw)
	if err != nil || object == nil {
		return nil, err
	}
	oldObject, err := decode(request.OldObject.Raw)
	if err != nil {
		return nil, err
	}
	attributes := attributesOf(request, object, oldObject)
	// As the API server does: policies that ask for it are evaluated once more if the object was changed.
	for range 2 {
		if err := r.dispatcher.Dispatch(ctx, attributes, r.interfaces, r.policies); err != nil {
			return nil, err
		}
		again := attributes.GetReinvocationContext()
		if again.IsReinvoke() || !again.ShouldReinvoke() {
			break
		}
		again.SetIsReinvoke()
	}
	patched, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	operations, err := jsonpatch.CreatePatch(request.Object.Raw, patched)
	if err != nil || len(operations) == 0 {
		return nil, err
	}
	return json.Marshal(operations)
}

func decode(raw []byte) (*unstructured.Unstructured, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("the request's object: %w", err)
	}
	return object, nil
}

func attributesOf(request *admissionv1.AdmissionRequest, object, oldObject *unstructured.Unstructured) admission.Attributes {
	var old runtime.Object // an interface: a nil pointer in it would not be nil
	if oldObject != nil {
		old = oldObject
	}
	return admission.NewAttributesRecord(
		object, old, kindOf(request.Kind), request.Namespace, request.Name, resourceOf(request.Resource),
		request.SubResource, admission.Operation(request.Operation), nil, request.DryRun != nil && *request.DryRun,
		userOf(request.UserInfo))
}

func kindOf(kind metav1.GroupVersionKind) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind}
}

func resourceOf(resource metav1.GroupVersionResource) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: resource.Group, Version: resource.Version, Resource: resource.Resource}
}

func userOf(info authenticationv1.UserInfo) user.Info {
	extra := map[string][]string{}
	for key, values := range info.Extra {
		extra[key] = values
	}
	return &user.DefaultInfo{Name: info.Username, UID: info.UID, Groups: info.Groups, Extra: extra}
}
