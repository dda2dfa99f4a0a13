// The webhook evaluates the MutatingAdmissionPolicies of deploy/cluster/policies for API servers that serve none, which
// are those before Kubernetes 1.36. It reads the same files and evaluates them with the API server's own packages, so an
// object gets the same changes either way.
//
// It answers /mutate with a JSON patch and /readyz once its caches are filled. What it cannot evaluate it refuses. The
// certificate is read for each connection, so a renewed one needs no restart.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

var gpuProjects = schema.GroupVersionResource{Group: "gpu-portal.io", Version: "v1", Resource: "gpuprojects"}

const stopWithin = 5 * time.Second

func main() {
	listen := flag.String("listen", ":8443", "address to serve HTTPS on")
	certificate := flag.String("tls-cert-file", "/tls/tls.crt", "certificate for HTTPS, PEM")
	key := flag.String("tls-key-file", "/tls/tls.key", "private key for HTTPS, PEM")
	folder := flag.String("policies", "/policies", "folder with the policies' YAML files")
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig; without it the service account of the pod")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		klog.Fatalf("no credentials for the API server: %v", err)
	}
	handler, err := newHandler(ctx, config, *folder)
	if err != nil {
		klog.Fatal(err)
	}
	server := &http.Server{
		Addr: *listen, Handler: handler, ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(*certificate, *key)
			return &pair, err
		}},
	}
	go func() {
		<-ctx.Done()
		limited, cancel := context.WithTimeout(context.Background(), stopWithin)
		defer cancel()
		_ = server.Shutdown(limited)
	}()
	if err := server.ListenAndServeTLS("", ""); !errors.Is(err, http.ErrServerClosed) {
		klog.Fatal(err)
	}
}

// newHandler returns the handler of /mutate and /readyz. It starts watching namespaces and GpuProjects.
func newHandler(ctx context.Context, config *rest.Config, folder string) (http.Handler, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	shared := informers.NewSharedInformerFactory(client, 0)
	namespaces := shared.Core().V1().Namespaces()
	projects := dynamicinformer.NewDynamicSharedInformerFactory(dynamicClient, 0).ForResource(gpuProjects)
	policies, err := loadPolicies(folder, projects)
	if err != nil {
		return nil, err
	}
	schemas := patch.NewTypeConverterManager(nil, client.Discovery().OpenAPIV3())
	// No policy of the portal asks the authorizer; one that did would be told no.
	authorizer := authorizerfactory.NewAlwaysDenyAuthorizer()
	dispatcher := mutating.NewDispatcher(authorizer, matching.NewMatcher(namespaces.Lister(), client), schemas)
	if err := dispatcher.Start(ctx); err != nil {
		return nil, err
	}
	go namespaces.Informer().Run(ctx.Done())
	go projects.Informer().Run(ctx.Done())
	isReady := func() bool {
		return namespaces.Informer().HasSynced() && projects.Informer().HasSynced() &&
			schemas.GetTypeConverter(corev1.SchemeGroupVersion.WithKind("Pod")) != nil
	}
	handler := http.NewServeMux()
	handler.Handle("POST /mutate", newReviewer(dispatcher, policies))
	handler.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !isReady() {
			http.Error(w, "the caches of namespaces, GpuProjects and schemas are not filled yet", http.StatusServiceUnavailable)
		}
	})
	return handler, nil
}
